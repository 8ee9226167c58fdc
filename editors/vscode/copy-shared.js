// Copies what the extension shares with other parts of the repository, since a package contains
// only files below its folder.

const fs = require('fs');
const path = require('path');

const SHARED = [
  ['../textmate/systola.tmLanguage.json', 'syntaxes/systola.tmLanguage.json'],
  ['../../LICENSE-MIT', 'LICENSE-MIT'],
  ['../../LICENSE-APACHE', 'LICENSE-APACHE'],
];

for (const [from, to] of SHARED) {
  const target = path.join(__dirname, to);
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.copyFileSync(path.join(__dirname, from), target);
}
fs.writeFileSync(
  path.join(__dirname, 'LICENSE'),
  'Licensed under either of the Apache License 2.0 (LICENSE-APACHE) or MIT (LICENSE-MIT), at your option.\n',
);
