//! Prints systems as the text language writes them.
