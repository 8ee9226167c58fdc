/**
 * The grammar of .ure files; `docs/language.md` teaches the language. The parser of the compiler,
 * in `crates/front/src/text`, decides what is legal. Where this grammar accepts more, a comment
 * says so.
 *
 * Most keywords are keywords in some positions only, and names elsewhere. The keyword extraction of
 * tree-sitter handles that where a name and a keyword can not both follow. Where both can, the rule
 * lists the keywords that are names, as aliases of `identifier`.
 */

/* eslint-env tree-sitter */

const SCALARS = [
  'bool', 'i8', 'i16', 'i32', 'i64', 'u8', 'u16', 'u32', 'u64', 'f16', 'bf16', 'f32', 'f64',
];
const INTEGERS = SCALARS.filter(name => /^[iu]/.test(name));
const FLOATS = SCALARS.filter(name => /^b?f/.test(name));
const SPECIAL = ['inf', 'nan'].flatMap(name => [name, ...FLOATS.map(type => `${name}_${type}`)]);

/** Functions of the language; `min` and `max` are listed where they are used. */
const BUILTINS = [
  'select', 'abs', 'sqrt', 'rsqrt', 'exp', 'log', 'pow', 'floor', 'ceil', 'sin', 'cos', 'tanh',
];

/** Words that are never names. */
const RESERVED = [
  'system', 'mapping', 'program', 'where', 'const', 'input', 'table', 'fn', 'batch', 'index', 'in',
  'var', 'on', 'output', 'at', 'when', 'else', 'let', 'true', 'false', 'reduce', 'scan', 'min',
  'max', ...BUILTINS, ...SPECIAL, ...SCALARS,
];

const PLACES = ['node', 'block', 'warp', 'lane', 'reg'];
const TIMES = ['launch', 'block_step', 'time'];
const CHECKS = ['check', 'trust', 'auto'];

/** Words that begin a directive, and may be the name before the `.` of a primitive too. */
const DIRECTIVES = [
  ...PLACES, ...TIMES, ...CHECKS, 'tile', 'space', 'align', 'store', 'forward', 'read', 'sum',
  'broadcast',
  'transfer', 'unroll', 'reverse', 'flags', 'look_back', 'func',
];

/** Binary operators, the loosest first. */
const OPERATORS = [
  ['||'], ['&&'], ['|'], ['^'], ['&'], ['==', '!='], ['<', '<=', '>', '>='], ['<<', '>>'],
  ['+', '-'], ['*', '/', '%'],
];
const DIGITS = /[0-9][0-9_]*/;
const FRACTION = /\.[0-9][0-9_]*/;
const EXPONENT = /[eE][+-]?[0-9][0-9_]*/;

const UNARY = OPERATORS.length + 1;
const POSTFIX = OPERATORS.length + 2;

/** `item, item, …`, at least one. */
const list1 = item => seq(item, repeat(seq(',', item)));

/** The same between brackets: it may be empty, or end with a comma. */
const list = item => optional(seq(list1(item), optional(',')));

/** One of some rules; a choice of one is none. */
const either = rules => rules.length === 1 ? rules[0] : choice(...rules);

/** Keywords that are names here. */
const named = ($, words) => words.map(word => alias(word, $.identifier));

module.exports = grammar({
  name: 'systola',

  word: $ => $.identifier,

  reserved: { global: _ => RESERVED },

  extras: $ => [/[ \t\r\n\f\uFEFF]/, $.comment],

  // `sum(w * u over box 1)` is a neighbourhood, `sum(w * u)` a call. The word `over` decides.
  conflicts: $ => [[$.expression, $.neighbourhood]],

  supertypes: $ => [$.expression, $.declaration, $.directive],

  rules: {
    source_file: $ => repeat($._item),

    _item: $ => choice($.system, $.stencil, $.convolution, $.mapping, $.program),

    // Items

    system: $ => seq('system', $._head, field('body', $.system_body)),
    system_body: $ => seq('{', repeat($.declaration), '}'),

    stencil: $ => seq('stencil', $._head, field('body', $.stencil_body)),
    stencil_body: $ => seq('{', repeat($._stencil_statement), '}'),

    convolution: $ => seq('conv', $._head, field('body', $.convolution_body)),
    convolution_body: $ => seq('{', repeat($._convolution_statement), '}'),

    program: $ => seq('program', $._head, field('body', $.program_body)),
    program_body: $ => seq('{', repeat($._program_statement), '}'),

    mapping: $ => seq(
      'mapping', field('name', $.identifier), 'of', field('system', $.identifier),
      field('body', $.mapping_body),
    ),
    mapping_body: $ => seq('{', repeat($.directive), '}'),

    _head: $ => seq(
      field('name', $.identifier), field('parameters', $.parameters),
      optional(field('context', $.where_clause)),
    ),
    parameters: $ => seq('(', list($.identifier), ')'),
    where_clause: $ => seq('where', list1($.expression)),

    // Declarations

    declaration: $ => choice(
      $.const_declaration, $.input_declaration, $.table_declaration, $.function_declaration,
      $.batch_declaration, $.index_declaration, $.variable_declaration, $.output_declaration,
    ),

    const_declaration: $ => seq(
      'const', field('name', $.identifier), ':', field('type', $._type), '=',
      field('value', $._literal), ';',
    ),

    input_declaration: $ => seq(
      'input', $._array, optional(choice($.else_clause, $.boundary)), ';',
    ),

    table_declaration: $ => seq(
      'table', $._array,
      choice(
        seq(optional($.else_clause), optional($._contents)),
        seq($._contents, $.else_clause),
      ),
      ';',
    ),
    _contents: $ => seq('=', field('value', choice($._literal, $.row))),
    row: $ => seq('[', list(choice($._literal, $.row)), ']'),

    _array: $ => seq(field('name', $.identifier), field('axes', $.axes), ':', field('type', $._type)),
    axes: $ => seq('[', list(choice($.expression, $.range)), ']'),
    range: $ => seq(field('from', $.expression), '..', field('to', $.expression)),
    else_clause: $ => seq('else', field('value', $._literal)),
    boundary: $ => choice(
      'interior', 'fixed', 'held', 'clamp', 'mirror', 'reflect', 'wrap',
      seq('constant', field('value', $._literal)),
    ),

    function_declaration: $ => seq(
      'fn', field('name', $.identifier), field('parameters', $.function_parameters), '->',
      field('type', $._type), optional($.law), '=', field('value', $._body), ';',
    ),
    function_parameters: $ => seq('(', list($.function_parameter), ')'),
    function_parameter: $ => seq(field('name', $.identifier), ':', field('type', $._type)),
    law: _ => choice('associative', 'reorderable'),

    batch_declaration: $ => seq(
      'batch', field('name', $.identifier), 'in', field('range', $.range),
      optional(seq('shared', field('shared', $.names))), ';',
    ),

    index_declaration: $ => seq(
      'index', list1($.iterator), optional(field('domain', $.where_clause)), ';',
    ),
    iterator: $ => seq(
      field('name', $.identifier), optional(seq('in', field('range', $.range))),
    ),

    variable_declaration: $ => seq(
      'var', field('name', $.identifier), optional($.own_iterators), ':',
      field('type', $._type), optional($.law), optional($.on_clause), '=', field('value', $._body), ';',
    ),
    own_iterators: $ => seq('(', list($.iterator), ')'),
    on_clause: $ => seq('on', list1($.expression)),

    output_declaration: $ => seq(
      'output', $._array, '=', list1($.write), optional($.else_clause), ';',
    ),
    write: $ => seq(
      field('value', $._body), 'at', field('index', $.subscript),
      optional(seq('when', field('condition', $.expression))),
    ),

    // Types

    _type: $ => choice($.scalar_type, $.tuple_type),
    scalar_type: _ => choice(...SCALARS),
    tuple_type: $ => seq('(', $._type, repeat1(seq(',', $._type)), optional(','), ')'),

    // Stencils and convolutions

    _stencil_statement: $ => choice(
      $.equation, $.field_declaration, $.steps_declaration,
      alias($.stencil_variable, $.variable_declaration),
      alias($.axis_names, $.index_declaration),
      alias($.named_output, $.output_declaration),
      $.input_declaration, $.table_declaration, $.const_declaration, $.function_declaration,
      $.batch_declaration,
    ),
    equation: $ => seq(
      field('name', choice($.identifier, ...named($, ['field', 'steps']))), '=',
      field('value', $._body), ';',
    ),
    field_declaration: $ => seq('field', $._array, optional($.boundary), ';'),
    steps_declaration: $ => seq('steps', field('value', $.expression), ';'),
    stencil_variable: $ => seq(
      'var', field('name', $.identifier), ':', field('type', $._type), optional($.boundary), '=',
      field('value', $._body), ';',
    ),
    axis_names: $ => seq('index', list1(alias($.axis_name, $.iterator)), ';'),
    axis_name: $ => field('name', $.identifier),
    named_output: $ => seq(
      'output', field('name', $.identifier), '=', field('value', $.identifier), ';',
    ),

    _convolution_statement: $ => choice(
      alias($.convolution_input, $.input_declaration),
      $.filter_declaration, $.stride_declaration, $.dilation_declaration, $.batch_declaration,
    ),
    convolution_input: $ => seq('input', $._array, optional($.boundary), ';'),
    filter_declaration: $ => seq('filter', $._array, optional($.else_clause), ';'),
    stride_declaration: $ => seq('stride', list1($.expression), ';'),
    dilation_declaration: $ => seq('dilation', list1($.expression), ';'),

    // Programs

    _program_statement: $ => choice(
      alias($.program_input, $.input_declaration), $.table_declaration, $.stage,
      alias($.program_output, $.output_declaration),
    ),
    program_input: $ => seq('input', $._array, optional($.else_clause), ';'),
    stage: $ => seq(
      field('name', $.identifier), '=', field('system', $.identifier),
      field('parameters', $.stage_parameters), field('inputs', $.stage_inputs), ';',
    ),
    stage_parameters: $ => seq('(', list($.stage_parameter), ')'),
    stage_parameter: $ => seq(field('name', $.identifier), '=', field('value', $.expression)),
    stage_inputs: $ => seq('(', list($.stage_input), ')'),
    stage_input: $ => seq(field('name', $.identifier), '=', field('value', $.source)),
    program_output: $ => seq(
      'output', field('name', $.identifier), '=', field('value', $.source), ';',
    ),
    source: $ => seq($.identifier, optional(seq('.', field('output', $.identifier)))),

    // Mappings

    directive: $ => choice(
      $.place, $.time, $.tile, $.when, $.space, $.align, $.keep, $.forward, $.read, $.sum, $.broadcast,
      $.transfer, $.unroll, $.check, $.reverse, $.flags, $.look_back, $.func, $.primitives,
    ),

    place: $ => seq(field('level', alias(choice(...PLACES), $.level)), '=', field('forms', $._forms), ';'),
    time: $ => seq(field('level', alias(choice(...TIMES), $.level)), '=', field('forms', $._forms), ';'),
    // `form`, `(form, form)`, which is a tuple, or `()`.
    _forms: $ => choice($.expression, alias($._nothing, $.tuple)),
    _nothing: _ => seq('(', ')'),

    tile: $ => seq(
      'tile', field('iterator', $.identifier), 'by', field('size', $.expression),
      choice(seq($._tile_names, optional($.overlap)), seq($.overlap, $._tile_names)),
      optional('periodic'), ';',
    ),
    _tile_names: $ => seq(
      'as', '(', field('outer', $.identifier), ',', field('inner', $.identifier), ')',
    ),
    overlap: $ => seq('overlap', '(', $.expression, ',', $.expression, ')'),

    when: $ => seq(
      'when', field('condition', $.expression), field('body', $.mapping_body), optional(';'),
    ),

    space: $ => seq('space', $.names, ';'),
    align: $ => seq(
      'align', field('variable', $.identifier), field('iterators', $.names), '->',
      field('forms', $._forms), ';',
    ),
    keep: $ => seq(
      'store', field('variable', $.identifier),
      optional(choice(
        seq('in', field('array', $.identifier), '[', list($.expression), ']'),
        seq('modulo', field('moduli', $._forms)),
      )), ';',
    ),
    forward: $ => seq(
      'forward', field('input', $.identifier), 'along', field('along', $._forms), ';',
    ),
    read: $ => seq('read', field('input', $.identifier), ';'),
    sum: $ => seq(
      'sum', field('variable', $.identifier), $._sum_stage, repeat(seq('then', $._sum_stage)), ';',
    ),
    _sum_stage: $ => choice(
      seq('along', choice($._directed, seq('(', list($._directed), ')'))),
      seq('tree', optional(choice($.identifier, $.names))),
    ),
    _directed: $ => seq(optional('-'), $.identifier),
    broadcast: $ => seq('broadcast', field('variable', $.identifier), ';'),

    // Each clause may stand once, which is not checked here.
    transfer: $ => seq(
      'transfer', field('input', $.identifier), 'to', $.store, repeat($.transfer_clause), ';',
    ),
    store: _ => choice('registers', 'shared', 'constant'),
    transfer_clause: $ => choice(
      seq('at', $.identifier),
      seq('stages', alias($.integer, $.number)),
      seq('layout', choice($._rows, seq('columns', optional($._rows)))),
      seq('by', choice('cp_async', 'bulk', 'plain')),
    ),
    _rows: $ => choice(seq('pad', alias($.integer, $.number)), 'rotate', 'plain'),

    unroll: $ => seq(
      'unroll', field('iterator', $.identifier), optional(seq('by', alias($.integer, $.number))), ';',
    ),
    check: $ => seq($._check, ';'),
    _check: _ => choice(...CHECKS),
    reverse: $ => seq('reverse', '(', list($.binding), ')', ';'),
    binding: $ => seq(field('name', $.identifier), '=', field('value', $.expression)),
    flags: _ => seq('flags', ';'),
    look_back: _ => seq('look_back', ';'),
    // The order of type, iterators and residence is not checked here.
    func: $ => seq(
      'func', field('name', $.identifier), '(', list(choice($._type, $.names, 'device', 'host')),
      ')', ';',
    ),
    names: $ => seq('(', list($.identifier), ')'),

    // `compute_at` and `store_in` follow `in`, which is not checked here.
    primitives: $ => seq(
      field('name', choice($.identifier, ...named($, DIRECTIVES))), repeat1($.primitive), ';',
    ),
    primitive: $ => seq('.', choice(
      seq(field('name', $._of_names), $.names),
      seq(
        field('name', alias('tile', $.primitive_name)), '(', $.identifier, ',', $.identifier, ',',
        $.identifier, ',', $.expression, ')',
      ),
      seq(field('name', alias('in', $.primitive_name)), '(', $.identifier, ')'),
      seq(
        field('name', alias('compute_at', $.primitive_name)), '(', $.identifier, ',', $.identifier,
        ')',
      ),
      seq(field('name', alias('store_in', $.primitive_name)), '(', $.store, ')'),
      seq(
        field('name', alias('space_time_transform', $.primitive_name)), '(', $.names, ',', $.names,
        ',', $.matrix, optional(seq(',', $.inverse)), optional(seq(',', $._check)), optional(','),
        ')',
      ),
    )),
    _of_names: $ => alias(
      choice('merge_ures', 'reorder', 'gpu_blocks', 'gpu_threads'), $.primitive_name,
    ),
    matrix: $ => seq('(', list($.matrix_row), ')'),
    matrix_row: $ => seq('(', list($.expression), ')'),
    inverse: $ => seq('reverse', '(', list($.expression), ')'),

    // Expressions

    _body: $ => choice($.expression, $.let_expression),
    let_expression: $ => seq(repeat1($.let), field('value', $.expression)),
    let: $ => seq('let', field('name', $.identifier), '=', field('value', $.expression), ';'),

    expression: $ => choice(
      $.number, $.boolean, $._name, $.call, $.element, $.reduce, $.scan, $.neighbourhood,
      $.parenthesized, $.tuple, $.component, $.unary, $.binary,
    ),

    // A function or an iterator may be called `sum`.
    _name: $ => choice($.identifier, alias('sum', $.identifier)),

    parenthesized: $ => seq('(', $._body, optional(','), ')'),
    tuple: $ => seq('(', $._body, repeat1(seq(',', $._body)), optional(','), ')'),
    component: $ => prec(POSTFIX, seq(field('tuple', $.expression), '.', $.component_index)),
    component_index: _ => /[0-9]+(\.[0-9]+)*/,

    unary: $ => prec(UNARY, seq(
      field('operator', choice('-', '!')), field('operand', $.expression),
    )),
    binary: $ => choice(...OPERATORS.map((level, n) => prec.left(n + 1, seq(
      field('left', $.expression), field('operator', either(level)),
      field('right', $.expression),
    )))),

    call: $ => seq(
      field('function', choice(
        $.identifier, alias('sum', $.identifier),
        $.builtin, alias(choice('min', 'max'), $.builtin), $.scalar_type,
      )),
      field('arguments', $.arguments),
    ),
    builtin: _ => choice(...BUILTINS),
    arguments: $ => seq('(', list($._body), ')'),

    element: $ => seq(field('array', $._name), field('index', $.subscript)),
    subscript: $ => seq('[', list($.expression), ']'),

    reduce: $ => seq(
      'reduce', '(', field('operator', $._operator), ',', repeat1(seq($.reduce_iterator, ',')),
      field('value', $._body), ')',
    ),
    reduce_iterator: $ => seq(field('name', $._name), 'in', field('range', $.range)),
    scan: $ => seq(
      'scan', '(', field('operator', $._operator), ',', field('iterator', $.identifier), ',',
      field('value', $._body), ')',
    ),
    _operator: $ => choice(
      '+', '*', 'min', 'max', '&&', '||', '&', '|', '^', $.identifier,
    ),

    neighbourhood: $ => seq(
      field('operator', choice('sum', 'min', 'max')), '(',
      optional(seq(field('weights', $._name), '*')), field('field', $._name), 'over', $._shape, ')',
    ),
    _shape: $ => choice($.shape, $.combined_shape),
    shape: $ => seq(choice('box', 'star'), choice(alias($.integer, $.number), seq('(', list(alias($.integer, $.number)), ')'))),
    combined_shape: $ => seq($.shape, choice('except', 'and'), $._shape),

    // Tokens

    _literal: $ => choice($.number, $.boolean, alias($.negative, $.unary)),
    negative: $ => seq(field('operator', '-'), field('operand', $.number)),
    number: $ => choice($._numeral, ...SPECIAL),
    // An integer with the suffix of any number, or a float with the suffix of a float.
    _numeral: _ => token(choice(
      seq(DIGITS, optional(choice(...INTEGERS, ...FLOATS))),
      seq(DIGITS, choice(seq(FRACTION, optional(EXPONENT)), EXPONENT), optional(choice(...FLOATS))),
    )),
    // A count or a radius.
    integer: _ => DIGITS,
    boolean: _ => choice('true', 'false'),

    identifier: _ => /[A-Za-z_][A-Za-z0-9_']*/,
    comment: _ => token(/\/\/[^\n]*/),
  },
});
