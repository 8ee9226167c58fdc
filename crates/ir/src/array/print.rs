//! Prints arrays for people: `systola dump` and `systola check`.
