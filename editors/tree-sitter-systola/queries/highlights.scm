; Names as Neovim and the command line of tree-sitter know them.

(comment) @comment @spell
(number) @number
(boolean) @boolean
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
(boundary value: (number) @number)

["reduce" "scan" "min" "max"] @function.builtin
(neighbourhood operator: _ @function.builtin)
(primitive_name) @function.method

(system name: (identifier) @type.definition)
(stencil name: (identifier) @type.definition)
(convolution name: (identifier) @type.definition)
(program name: (identifier) @type.definition)
(mapping name: (identifier) @function)
(mapping system: (identifier) @type)
(stage system: (identifier) @type)

(input_declaration name: (identifier) @variable.member)
(table_declaration name: (identifier) @variable.member)
(field_declaration name: (identifier) @variable.member)
(filter_declaration name: (identifier) @variable.member)
(output_declaration name: (identifier) @variable.member)
(element array: (identifier) @variable.member)
(const_declaration name: (identifier) @constant)
(function_declaration name: (identifier) @function)
(variable_declaration name: (identifier) @function)
(call function: (identifier) @function.call)

[
  "=" "==" "!=" "<" "<=" ">" ">=" "<<" ">>" "+" "-" "*" "/" "%" "!" "&&" "||" "&" "|" "^" "->" ".."
] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ";" ":" "."] @punctuation.delimiter
