use crate::codes::codes;

codes! { Mistake:
    UNEXPECTED_CHARACTER = "E0101", "x", "x";
    UNEXPECTED_TOKEN = "E0102", "x", "x";
    UNCLOSED = "E0103", "x", "x";
    MALFORMED_NUMBER = "E0104", "x", "x";
    RESERVED_WORD = "E0105", "x", "x";
    TOO_LARGE = "E0106", "x", "x";
    ASSIGN_IN_CONDITION = "E0107", "x", "x";
    UNKNOWN_DIRECTIVE = "E0108", "x", "x";
    SOURCE_TOO_LONG = "E0109", "x", "x";
    UNKNOWN_DECLARATION = "E0110", "x", "x";
    NO_MAPPING_FORM = "E0111", "x", "x";
    REPEATED = "E0112", "x", "x";
    NO_RANGE = "E0113", "x", "x";
    UNKNOWN_TYPE = "E0114", "x", "x";
    NO_REDUCTION = "E0115", "x", "x";
}
