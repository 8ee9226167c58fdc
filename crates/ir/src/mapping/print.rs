//! Prints mappings as the text language writes them.
