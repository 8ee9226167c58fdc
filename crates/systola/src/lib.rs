//! Recurrences and space-time mappings as software systolic arrays.
