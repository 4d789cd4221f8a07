// Koncorde's side of benchmarks.mixed: filters and messages as lines in; seconds per message and rows out.
// node koncorde_scalars.js NODE_FOLDER FILTERS MESSAGES ANSWERS.json PASSES
const fs = require('fs');
const path = require('path');
const [folder, filtersPath, messagesPath, answersPath, passes] = process.argv.slice(2);
const LIMIT = 60; // seconds after which no further pass begins
const { Koncorde } = require(path.join(folder, 'node_modules', 'koncorde'));

function* lines(name) {
  const text = fs.readFileSync(name, 'latin1');
  for (let start = 0, end = text.indexOf('\n'); end >= 0; start = end + 1, end = text.indexOf('\n', start)) {
    yield text.slice(start, end);
  }
}

function condition(token) {
  const [name, low, high] = token.split(':');
  if (high !== undefined) return { range: { [name]: { gte: Number(low), lte: Number(high) } } };
  const [attribute, value] = token.split('=');
  return { equals: { [attribute]: value } };
}

function message(line) {
  const pairs = line.split(' ').map((token) => token.split('='));
  return Object.fromEntries(pairs.map(([name, value]) => [name, name[0] === 's' ? value : Number(value)]));
}

function now() {
  return Number(process.hrtime.bigint()) / 1e9;
}

const koncorde = new Koncorde();
const rowsOf = new Map(); // equal filters share an identifier
const started = now();
let row = 0;
for (const line of lines(filtersPath)) {
  const id = koncorde.register({ and: line.split(' ').map(condition) });
  if (rowsOf.has(id)) rowsOf.get(id).push(row);
  else rowsOf.set(id, [row]);
  row += 1;
}
const registering = now() - started;
const messages = Array.from(lines(messagesPath), message);
let found = messages.map((one) => koncorde.test(one)); // to warm up
const times = [];
const matching = now();
for (let pass = 0; pass < Number(passes) && (pass === 0 || now() - matching < LIMIT); pass += 1) {
  const start = now();
  found = messages.map((one) => koncorde.test(one));
  times.push((now() - start) / messages.length);
}
times.sort((a, b) => a - b);
const rows = found.map((ids) => ids.flatMap((id) => rowsOf.get(id)));
const answer = { seconds: times[Math.floor(times.length / 2)], registering, form: 'and of equals and range', rows };
fs.writeFileSync(answersPath, JSON.stringify(answer));
