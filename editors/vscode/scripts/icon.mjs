// Draws images/icon.png: two runs of one training that part half way. `node scripts/icon.mjs`
import { writeFileSync } from "node:fs";
import { deflateSync } from "node:zlib";

const SIZE = 128;
const SAMPLES = 4;
const INK = [30, 36, 51];
const FIRST = [238, 76, 44];
const SECOND = [120, 200, 220];

const loss = (x) => 24 + 86 * (1 - Math.exp(-(x - 16) / 34));
const curves = [
  { colour: SECOND, y: (x) => loss(x) - 30 * Math.max(0, (x - 56) / 56) ** 1.4 },
  { colour: FIRST, y: (x) => loss(x) },
];

/** Whether a point is in the square with round corners. */
function inside(x, y) {
  const corner = (v) => Math.max(24 - v, v - (SIZE - 24), 0);
  return Math.hypot(corner(x), corner(y)) <= 24;
}

function near(curve, x, y) {
  let best = Infinity;
  for (let at = Math.max(18, x - 8); at <= Math.min(110, x + 8); at += 0.5) {
    best = Math.min(best, Math.hypot(at - x, curve.y(at) - y));
  }
  return best <= 5;
}

function colourAt(x, y) {
  if (!inside(x, y)) {
    return [0, 0, 0, 0];
  }
  const hit = curves.findLast((curve) => near(curve, x, y));
  return [...(hit ? hit.colour : INK), 255];
}

function pixel(column, row) {
  const sum = [0, 0, 0, 0];
  for (let i = 0; i < SAMPLES * SAMPLES; i++) {
    const [r, g, b, a] = colourAt(
      column + ((i % SAMPLES) + 0.5) / SAMPLES,
      row + (Math.floor(i / SAMPLES) + 0.5) / SAMPLES,
    );
    [r * a, g * a, b * a, a].forEach((value, k) => (sum[k] += value));
  }
  const [r, g, b, a] = sum;
  return a === 0 ? [0, 0, 0, 0] : [r / a, g / a, b / a, a / (SAMPLES * SAMPLES)].map(Math.round);
}

const CRC = Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) {
    n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  }
  return n >>> 0;
});

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const crc = ~body.reduce((sum, byte) => CRC[(sum ^ byte) & 255] ^ (sum >>> 8), -1) >>> 0;
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc, 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

const header = Buffer.alloc(13);
header.writeUInt32BE(SIZE, 0);
header.writeUInt32BE(SIZE, 4);
header.set([8, 6, 0, 0, 0], 8);
const rows = Array.from({ length: SIZE }, (_, row) => [0, ...Array.from({ length: SIZE }, (_, x) => pixel(x, row)).flat()]);
writeFileSync(
  new URL("../images/icon.png", import.meta.url),
  Buffer.concat([
    Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(Buffer.from(rows.flat()), { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]),
);
