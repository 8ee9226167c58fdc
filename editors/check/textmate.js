// Tests the TextMate grammar: `node textmate.js WORDS`, where the file WORDS has the output of
// `systola-editors words`. Every word, number, sign and comment of every program has the scope that
// fits how tree-sitter reads it, and annotated texts have the scopes that they name.

const assert = require('assert');
const fs = require('fs');
const path = require('path');
const oniguruma = require('vscode-oniguruma');
const textmate = require('vscode-textmate');

const FOLDER = path.join(__dirname, '../textmate');

/** The scopes of each kind of a word. */
const SCOPES = {
  keyword: /^(keyword\.control|keyword\.other|storage\.|support\.)/,
  builtin: /^support\.function/,
  type: /^support\.type/,
  number: /^constant\.(numeric|language)/,
  constant: /^constant\.language/,
  comment: /^comment/,
  call: /^entity\.name\.function/,
  name: /^(variable|entity\.name)/,
  sign: /^(keyword\.operator|punctuation)/,
};

async function grammar() {
  const wasm = fs.readFileSync(require.resolve('vscode-oniguruma/release/onig.wasm'));
  await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.length));
  const file = path.join(FOLDER, 'systola.tmLanguage.json');
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: sources => new oniguruma.OnigScanner(sources),
      createOnigString: text => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(file, 'utf8'), file),
  });
  return registry.loadGrammar('source.ure');
}

/** The scopes of each line: a list of `[start, end, scopes]`. */
function tokenize(grammar, lines) {
  let state = textmate.INITIAL;
  return lines.map(line => {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, state);
    state = ruleStack;
    return tokens.map(token => [token.startIndex, token.endIndex, token.scopes]);
  });
}

/** What is wrong with the scopes of a program. */
function mistakes(grammar, program) {
  const bytes = fs.readFileSync(program.path);
  const lines = bytes.toString('utf8').split('\n');
  const tokens = tokenize(grammar, lines);
  const wrong = [];
  let [line, start] = [0, 0];
  const length = n => Buffer.byteLength(lines[n]) + 1;
  for (const [kind, from, to] of program.words) {
    while (start + length(line) <= from) start += length(line++);
    const column = bytes.toString('utf8', start, from).length;
    const end = column + bytes.toString('utf8', from, to).length;
    // Every token between must fit, since a regular expression may end inside of a word.
    for (const [first, last, scopes] of tokens[line]) {
      if (last <= column || first >= end) continue;
      const scope = scopes[scopes.length - 1];
      if (!SCOPES[kind].test(scope)) {
        const text = lines[line].slice(column, end);
        wrong.push(`${program.path}:${line + 1}:${column + 1}: \`${text}\` is a ${kind}, not ${scope}`);
      }
    }
  }
  return wrong;
}

/**
 * Checks a text with annotations: below a line, `//   ^^^ scope …` names scopes of the columns above
 * the carets, and `// <-- scope` those of as many columns from the first as it has dashes.
 */
function annotations(grammar, file) {
  const lines = fs.readFileSync(file, 'utf8').split('\n');
  const note = /^\/\/\s*(?:(\^+)|<(-+))\s+(\S.*)$/;
  const code = lines.map(line => (note.test(line) ? '' : line));
  const tokens = tokenize(grammar, code);
  let above = 0;
  let count = 0;
  lines.forEach((line, n) => {
    const found = line.match(note);
    if (!found) {
      above = n;
      return;
    }
    const [, carets, dashes, scopes] = found;
    const from = carets ? line.indexOf('^') : 0;
    const to = from + (carets ?? dashes).length;
    for (const scope of scopes.split(/\s+/)) {
      for (const [first, last, has] of tokens[above]) {
        if (last <= from || first >= to) continue;
        const fits = has.some(name => name === scope || name.startsWith(`${scope}.`));
        assert(fits, `${file}:${n + 1}: ${has.join(' ')} instead of ${scope}`);
        count += 1;
      }
    }
  });
  return count;
}

async function test() {
  const rules = await grammar();
  let count = 0;
  for (const file of fs.readdirSync(path.join(FOLDER, 'test')))
    count += annotations(rules, path.join(FOLDER, 'test', file));
  assert(count > 60, `${count} annotations`);
  const programs = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
  assert(programs.length > 90, `${programs.length} programs`);
  const wrong = programs.flatMap(program => mistakes(rules, program));
  assert.equal(wrong.length, 0, `${wrong.length} wrong scopes\n${wrong.slice(0, 40).join('\n')}`);
  const words = programs.reduce((sum, program) => sum + program.words.length, 0);
  console.log(`${count} annotations, ${words} words of ${programs.length} programs`);
}

test().catch(error => {
  console.error(error.message);
  process.exitCode = 1;
});
