// Every keyword of the parser of the compiler is a keyword of both grammars.

const assert = require('assert');
const fs = require('fs');
const path = require('path');

const ROOT = path.join(__dirname, '../..');

const read = file => fs.readFileSync(path.join(ROOT, file), 'utf8');

/** The strings of a constant list of a Rust source. */
function list(file, name) {
  const found = read(file).match(new RegExp(`const ${name}: [^=]*=\\s*&?\\[([^\\]]*)\\];`));
  assert(found, `${file}: no list ${name}`);
  return strings(found[1]);
}

/** The strings of a Rust text that are words. */
function strings(text) {
  return [...text.matchAll(/"([a-z][a-z0-9_]*)"/g)].map(found => found[1]);
}

/** The words that a Rust source compares a word of a program with. */
function compared(file) {
  const text = read(file).split('#[cfg(test)]')[0];
  const calls = text.matchAll(/(?:eat_word|expect_word|at_word)\("([a-z_]+)"\)/g);
  const arms = text.matchAll(/Some\((?:\w+ @ )?\(?("[a-z_]+"(?: \| "[a-z_]+")*)\)?\)/g);
  return [...[...calls].map(found => found[1]), ...[...arms].flatMap(found => strings(found[1]))];
}

/** Words of other languages, which the parser knows only to say what to write instead. */
const REFUSED = ['if'];

/** All words that the parser accepts, read from its sources. */
function keywords() {
  const text = 'crates/front/src/text';
  const parts = fs.readdirSync(path.join(ROOT, text, 'parser'));
  const files = ['parser.rs', ...parts.map(file => `parser/${file}`)].map(f => `${text}/${f}`);
  const words = [
    ...list('crates/surface/src/words.rs', 'RESERVED'),
    ...list(`${text}/parser.rs`, 'DECLARATIONS'),
    ...list(`${text}/parser.rs`, 'ITEMS'),
    ...list(`${text}/parser.rs`, 'NAMED_ITEMS'),
    ...list(`${text}/parser/mapping.rs`, 'DIRECTIVES'),
    ...list(`${text}/parser/mapping.rs`, 'METHODS'),
    ...list(`${text}/parser/stencil.rs`, 'STENCIL'),
    ...list(`${text}/parser/stencil.rs`, 'CONV'),
    ...list('crates/stencil/src/lib.rs', 'WORDS'),
    ...scalars(),
    ...files.flatMap(compared),
  ];
  for (const word of REFUSED) assert(words.includes(word), `the parser does not know ${word}`);
  return [...new Set(words)].filter(word => !REFUSED.includes(word)).sort();
}

function scalars() {
  const found = [...read('crates/ir/src/scalar.rs').matchAll(/Scalar::\w+ => "(\w+)"/g)];
  return found.map(([, name]) => name);
}

/** The strings of a grammar of tree-sitter. */
function literals(rule, found = new Set()) {
  if (rule && typeof rule === 'object') {
    if (rule.type === 'STRING') found.add(rule.value);
    Object.values(rule).forEach(part => literals(part, found));
  }
  return found;
}

function test() {
  const words = keywords();
  // The reader of the sources finds what it should.
  assert(words.length > 100, `${words.length} keywords`);
  for (const word of ['system', 'along', 'cp_async', 'over', 'reorderable', 'mirror', 'bf16', 'cosh'])
    assert.equal(words.includes(word), word !== 'cosh', word);
  const tree = literals(JSON.parse(read('editors/tree-sitter-systola/src/grammar.json')).rules);
  const textmate = new Set(read('editors/textmate/systola.tmLanguage.json').match(/[a-z][a-z0-9_]*/g));
  for (const word of words) {
    assert(tree.has(word), `editors/tree-sitter-systola/grammar.js lacks the keyword ${word}`);
    assert(textmate.has(word), `editors/textmate/systola.tmLanguage.json lacks the keyword ${word}`);
  }
  console.log(`${words.length} keywords`);
}

test();
