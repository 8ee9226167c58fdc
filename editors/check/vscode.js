// Tests the extension of Visual Studio Code: `node vscode.js SYSTOLA EXTENSION`. The extension runs
// with a stub of the editor, the real client and the real `systola lsp`: it starts, shows an array,
// restarts and stops.

const assert = require('assert');
const fs = require('fs');
const Module = require('module');
const path = require('path');

const ROOT = path.join(__dirname, '../..');
const [, , systola, folder] = process.argv;

/** What happened in the editor. */
const seen = { commands: new Map(), errors: [], notes: [], panels: [] };

const settings = { path: systola, serverArguments: ['lsp'] };

const program = path.join(ROOT, 'gallery/conv1d/core.ure');
const text = fs.readFileSync(program, 'utf8');
const editor = {
  document: {
    getText: () => text,
    offsetAt: () => editor.offset,
    uri: { fsPath: program },
    isDirty: false,
    isUntitled: false,
  },
  selection: {},
  offset: 0,
};

/** What the editor offers and no test looks at: can be called, constructed and extended. */
function anything(known = {}) {
  const target = class {
    dispose() {}
  };
  Object.assign(target, known);
  return new Proxy(target, {
    get: (of, name) => {
      if (Object.hasOwn(of, name) || name === 'prototype' || typeof name === 'symbol') return of[name];
      // It is not a promise.
      return name === 'then' ? undefined : anything();
    },
    apply: () => ({ dispose() {} }),
  });
}

class EventEmitter {
  listeners = new Set();
  event = listener => {
    this.listeners.add(listener);
    return { dispose: () => this.listeners.delete(listener) };
  };
  fire(what) {
    this.listeners.forEach(listener => listener(what));
  }
  dispose() {
    this.listeners.clear();
  }
}

class CancellationTokenSource {
  token = { isCancellationRequested: false, onCancellationRequested: new EventEmitter().event };
  cancel() {}
  dispose() {}
}

const channel = { append() {}, appendLine() {}, show() {}, clear() {}, dispose() {} };
const stub = anything({
  version: '1.90.0',
  EventEmitter,
  CancellationTokenSource,
  env: { language: 'en', appName: 'stub' },
  workspace: anything({
    workspaceFolders: undefined,
    textDocuments: [],
    notebookDocuments: [],
    getConfiguration: () => ({ get: (name, fallback) => settings[name] ?? fallback }),
  }),
  window: anything({
    activeTextEditor: editor,
    visibleTextEditors: [],
    tabGroups: anything({ all: [] }),
    createOutputChannel: () => channel,
    showErrorMessage: async message => void seen.errors.push(message),
    showInformationMessage: async message => void seen.notes.push(message),
    createWebviewPanel: (kind, title) => {
      const panel = { title, webview: { html: '' } };
      seen.panels.push(panel);
      return panel;
    },
  }),
  commands: anything({
    registerCommand: (name, run) => {
      seen.commands.set(name, run);
      return { dispose: () => seen.commands.delete(name) };
    },
  }),
});

const load = Module._load;
Module._load = (name, ...rest) => (name === 'vscode' ? stub : load(name, ...rest));

/** The manifest names files and commands that are there. */
function manifest(package_) {
  const there = file => assert(fs.existsSync(path.join(folder, file)), `${file} is missing`);
  const { contributes } = package_;
  there(package_.main);
  contributes.languages.forEach(language => there(language.configuration));
  contributes.grammars.forEach(grammar => there(grammar.path));
  const [language] = contributes.languages;
  const rules = JSON.parse(fs.readFileSync(path.join(folder, language.configuration), 'utf8'));
  for (const pattern of Object.values(rules.indentationRules)) new RegExp(pattern);
  const grammar = path.join(folder, contributes.grammars[0].path);
  const { scopeName } = JSON.parse(fs.readFileSync(grammar, 'utf8'));
  assert.equal(scopeName, contributes.grammars[0].scopeName);
  const source = fs.readFileSync(path.join(folder, package_.main), 'utf8');
  for (const name of Object.keys(contributes.configuration.properties)) {
    const last = name.split('.')[1];
    // The client reads the last one by itself.
    assert(last === 'trace' || source.includes(`get('${last}'`), `nothing reads ${name}`);
  }
}

async function test() {
  const package_ = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
  manifest(package_);
  const { LanguageClient, State } = require(path.join(folder, 'node_modules/vscode-languageclient/node'));
  const clients = [];
  const start = LanguageClient.prototype.start;
  LanguageClient.prototype.start = function () {
    clients.push(this);
    return start.call(this);
  };
  const extension = require(path.join(folder, package_.main));
  await extension.activate({ subscriptions: [] });
  assert.deepEqual(seen.errors, []);
  const commands = package_.contributes.commands.map(({ command }) => command);
  assert.deepEqual([...seen.commands.keys()].sort(), commands.sort());
  const [first] = clients;
  assert.equal(first.state, State.Running);
  const { capabilities } = first.initializeResult;
  for (const name of ['hoverProvider', 'definitionProvider', 'renameProvider', 'documentFormattingProvider'])
    assert(capabilities[name], `the server offers no ${name}`);

  await seen.commands.get('systola.restartServer')();
  assert.equal(clients.length, 2);
  assert.equal(first.state, State.Stopped);
  assert.equal(clients[1].state, State.Running);

  const show = seen.commands.get('systola.showArray');
  editor.offset = text.indexOf('system conv1d');
  await show();
  assert.equal(seen.notes.length, 1, 'no mapping');
  editor.offset = text.indexOf('sum Z along -q');
  await show();
  assert.deepEqual(seen.errors, []);
  assert.equal(seen.panels[0].title, 'fsm of conv1d');
  assert.match(seen.panels[0].webview.html, /<body><svg[\s\S]*<\/svg>\s*<\/body>/);

  settings.path = path.join(folder, 'nothing');
  await show();
  assert.equal(seen.errors.length, 1, 'no program');
  await seen.commands.get('systola.restartServer')();
  assert.equal(clients[1].state, State.Stopped);
  assert(seen.errors.some(message => /nothing lsp` did not start/.test(message)), seen.errors);
  settings.path = systola;
  await seen.commands.get('systola.restartServer')();
  const last = clients[3];
  assert.equal(last.state, State.Running);
  await extension.deactivate();
  assert.equal(last.state, State.Stopped);
  console.log(`${clients.length} clients, ${seen.panels.length} picture`);
}

const timeout = setTimeout(() => fail(new Error('no answer in 60 s')), 60_000);
const fail = error => {
  console.error(error.stack ?? error);
  process.exit(1);
};
test().then(() => {
  clearTimeout(timeout);
  // Sockets of a server that has ended must not keep this process.
  process.exit(0);
}, fail);
