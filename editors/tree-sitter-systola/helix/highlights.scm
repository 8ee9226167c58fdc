; Names as Helix knows them; otherwise the same as `queries/highlights.scm`.

(comment) @comment.line
(number) @constant.numeric
(boolean) @constant.builtin.boolean
(scalar_type) @type.builtin
(builtin) @function.builtin

(identifier) @variable
(parameters (identifier) @variable.parameter)
(function_parameter name: (identifier) @variable.parameter)

[
  "system" "stencil" "conv" "mapping" "program" "of" "where"
  "const" "input" "table" "fn" "batch" "index" "var" "output" "field" "steps" "filter" "stride"
  "dilation" "in" "on" "at" "when" "else" "let" "over" "box" "star" "except" "and" "shared"
] @keyword

[
  "tile" "by" "as" "overlap" "periodic" "space" "align" "store" "modulo" "forward" "along" "read" "sum" "tree" "then"
  "broadcast" "transfer" "to" "stages" "layout" "columns" "pad" "rotate" "plain" "cp_async" "bulk"
  "unroll" "check" "trust" "auto" "reverse" "flags" "look_back" "func" "device" "host"
] @keyword

(level) @keyword
(store) @attribute
[(boundary) (law)] @attribute
(boundary value: (number) @constant.numeric)

["reduce" "scan" "min" "max"] @function.builtin
(neighbourhood operator: _ @function.builtin)
(primitive_name) @function.special

(system name: (identifier) @type)
(stencil name: (identifier) @type)
(convolution name: (identifier) @type)
(program name: (identifier) @type)
(mapping name: (identifier) @function)
(mapping system: (identifier) @type)
(stage system: (identifier) @type)

(input_declaration name: (identifier) @variable.other.member)
(table_declaration name: (identifier) @variable.other.member)
(field_declaration name: (identifier) @variable.other.member)
(filter_declaration name: (identifier) @variable.other.member)
(output_declaration name: (identifier) @variable.other.member)
(element array: (identifier) @variable.other.member)
(const_declaration name: (identifier) @constant)
(function_declaration name: (identifier) @function)
(variable_declaration name: (identifier) @function)
(call function: (identifier) @function)

[
  "=" "==" "!=" "<" "<=" ">" ">=" "<<" ">>" "+" "-" "*" "/" "%" "!" "&&" "||" "&" "|" "^" "->" ".."
] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ";" ":" "."] @punctuation.delimiter
