// Starts `systola lsp` for .ure files, and shows the arrays of mappings.

const { execFile } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const vscode = require('vscode');
const { LanguageClient, TransportKind } = require('vscode-languageclient/node');

/** The running client, if there is one. */
let client;

async function activate(context) {
  const command = (name, run) =>
    context.subscriptions.push(vscode.commands.registerCommand(name, run));
  command('systola.restartServer', restart);
  command('systola.showArray', showArray);
  context.subscriptions.push(
    vscode.workspace.onDidChangeConfiguration(change => {
      const settings = ['systola.path', 'systola.serverArguments'];
      return settings.some(name => change.affectsConfiguration(name)) ? restart() : undefined;
    }),
  );
  await start();
}

async function deactivate() {
  const running = client;
  client = undefined;
  await running?.stop();
}

async function restart() {
  // A client whose server did not start can not be stopped.
  await deactivate().catch(() => undefined);
  await start();
}

function settings() {
  return vscode.workspace.getConfiguration('systola');
}

async function start() {
  const server = {
    command: settings().get('path', 'systola'),
    args: settings().get('serverArguments', ['lsp']),
    transport: TransportKind.stdio,
  };
  const options = { documentSelector: [{ language: 'ure' }] };
  // The name of the settings of the trace.
  client = new LanguageClient('systola', 'Systola', server, options);
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(
      `\`${server.command} ${server.args.join(' ')}\` did not start: ${error.message ?? error}. ` +
        'Install systola with `cargo install --path crates/cli`, or set `systola.path`.',
    );
  }
}

/** The mapping that contains an offset of a text, with its system. */
function mappingAt(text, offset) {
  const name = "([A-Za-z_][A-Za-z0-9_']*)";
  const items = new RegExp(
    `^[ \\t]*(?:mapping\\s+${name}\\s+of\\s+${name}|(?:system|program|stencil|conv)\\s+\\w)`, 'gm',
  );
  let found;
  for (const item of text.matchAll(items)) {
    if (item.index > offset) break;
    found = item;
  }
  return found?.[1] && { mapping: found[1], system: found[2] };
}

async function showArray() {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return;
  const { document } = editor;
  const at = mappingAt(document.getText(), document.offsetAt(editor.selection.active));
  if (!at) {
    vscode.window.showInformationMessage('Move the cursor into a mapping to see its array.');
    return;
  }
  if (document.isUntitled || (document.isDirty && !(await document.save()))) {
    vscode.window.showInformationMessage('Save the file to see the array of the mapping.');
    return;
  }
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'systola-'));
  const picture = path.join(folder, 'array.svg');
  const options = ['--map', at.mapping, '--system', at.system, '-o', picture];
  try {
    await systola(['show', document.uri.fsPath, ...options]);
    const panel = vscode.window.createWebviewPanel(
      'systola.array', `${at.mapping} of ${at.system}`, vscode.ViewColumn.Beside, {},
    );
    panel.webview.html = page(fs.readFileSync(picture, 'utf8'));
  } catch (error) {
    vscode.window.showErrorMessage(String(error.message ?? error));
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs systola; fails with what it printed. */
function systola(args) {
  return new Promise((done, fail) => {
    execFile(settings().get('path', 'systola'), args, (error, _, printed) =>
      error ? fail(new Error(printed.trim() || error.message)) : done(),
    );
  });
}

/** A page with a picture. Pictures have a light background, whatever the theme. */
function page(svg) {
  const policy = "default-src 'none'; style-src 'unsafe-inline'";
  return `<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<style>body { background: white; } svg { max-width: 100%; height: auto; }</style>
</head>
<body>${svg.slice(svg.indexOf('<svg'))}</body>
</html>`;
}

module.exports = { activate, deactivate };
