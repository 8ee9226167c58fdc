//! Verifies what every array must satisfy by construction.
