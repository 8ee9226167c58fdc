use crate::codes::codes;

codes! { Mistake:
    UNKNOWN_NAME = "E0201", "x", "x";
    DUPLICATE_NAME = "E0202", "x", "x";
    TYPE_MISMATCH = "E0203", "x", "x";
    NO_SUCH_OPERATOR = "E0204", "x", "x";
    LITERAL_RANGE = "E0205", "x", "x";
    WRONG_COUNT = "E0206", "x", "x";
    NOT_AFFINE = "E0207", "x", "x";
    DIVISOR_NOT_CONSTANT = "E0208", "x", "x";
    BAD_DIVISOR = "E0209", "x", "x";
    VALUE_IN_INDEX = "E0210", "x", "x";
    WRONG_KIND = "E0211", "x", "x";
    RECURSIVE_FUNCTION = "E0212", "x", "x";
    IMPURE_FUNCTION = "E0213", "x", "x";
    READ_ELSEWHERE = "E0214", "x", "x";
    TABLE_SHAPE = "E0215", "x", "x";
    SELECT_NEEDS_ELSE = "E0216", "x", "x";
    NOT_A_CONDITION = "E0217", "x", "x";
    ITERATOR_NOT_SEEN = "E0218", "x", "x";
    UNKNOWN_SYSTEM = "E0219", "x", "x";
    STAGE_PARAMETERS = "E0220", "x", "x";
    STAGE_INPUTS = "E0221", "x", "x";
    STAGE_ORDER = "E0222", "x", "x";
    ARRAY_MISMATCH = "E0223", "x", "x";
    NO_SUCH_FIELD = "E0224", "x", "x";
    BAD_COMBINE = "E0225", "x", "x";
    MISPLACED_REDUCE = "E0226", "x", "x";
    COEFFICIENT_TOO_LARGE = "E0227", "x", "x";
    NOT_SCALAR = "E0228", "x", "x";
}
