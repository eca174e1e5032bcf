/**
* Returns whether a compressed block has a Huffman tree whose table of weights gives one symbol all states. That is corrupt, since no bit is read
 * for a weight, and fzstd would read weights from it without end (RFC 8878, sections 3.1.1.3.1.1, 4.1.1 and 4.2.1.2). It does not test
 * for other corrupt tables, which fzstd rejects.
 */
export function hasEndlessWeights(block) {
  const tree = [3, 3, 4, 5][(block[0] >> 2) & 3]; // after the header of the literals
  if ((block[0] & 3) !== 2 || !(block[tree] < 128)) return false;
  const bits = (at, count) => Array.from({ length: count }, (_, bit) => (block[(at + bit) >> 3] >> ((at + bit) & 7)) & 1)
    .reduceRight((value, bit) => value * 2 + bit, 0);
  const log = bits((tree + 1) * 8, 4) + 5;
  let at = (tree + 1) * 8 + 4;
  while (bits(at, log) === 1 && at < block.length * 8) { // a symbol without a state, and how many more of them follow
    at += log;
    for (let more = 3; more === 3; at += 2) more = bits(at, 2);
  }
  return bits(at, log + 1) === 2 ** (log + 1) - 1;
}
