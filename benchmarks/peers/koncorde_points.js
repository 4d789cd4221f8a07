// Koncorde's side of benchmarks.match: polygons and points as JSON in; seconds per point and matches out.
// node koncorde_points.js NODE_FOLDER ASKED.json ANSWERS.json
const fs = require('fs');
const path = require('path');
const [folder, askedPath, answersPath] = process.argv.slice(2);
const { Koncorde } = require(path.join(folder, 'node_modules', 'koncorde'));
const asked = JSON.parse(fs.readFileSync(askedPath, 'utf8'));
const koncorde = new Koncorde();
const rowOf = new Map();
asked.polygons.forEach((ring, row) => {
  const points = ring.map(([lon, lat]) => ({ lat, lon }));
  rowOf.set(koncorde.register({ geoPolygon: { location: { points } } }), row);
});
const documents = asked.points.map(([lon, lat]) => ({ location: { lat, lon } }));
documents.forEach((document) => koncorde.test(document));
const times = [];
let found = [];
for (let repeat = 0; repeat < 5; repeat += 1) {
  const start = process.hrtime.bigint();
  found = documents.map((document) => koncorde.test(document));
  times.push(Number(process.hrtime.bigint() - start) / 1e9 / documents.length);
}
times.sort((a, b) => a - b);
const rows = found.map((ids) => ids.map((id) => rowOf.get(id)));
fs.writeFileSync(answersPath, JSON.stringify({ seconds: times[2], rows }));
