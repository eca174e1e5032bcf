// What the chunks of a bundle hold, for a picture of the file.

/** What a chunk can hold, by the numbers that the reader uses for it. */
const CLASSES = /** @type {const} */ (["hot", "small", "large", "shared"]);

/**
 * Returns the bytes in each class of chunks and, for each of `columns` equal parts of all bytes, the class with the largest share.
 * @param {Uint8Array} classes
 * @param {Float64Array} offsets
 * @param {number} columns
 */
export function shares(classes, offsets, columns) {
  const total = offsets[classes.length];
  const sums = [0, 0, 0, 0];
  const most = Array.from({ length: columns }, () => [0, 0, 0, 0]);
  classes.forEach((kind, chunk) => {
    const [start, end] = [offsets[chunk], offsets[chunk + 1]];
    sums[kind] += end - start;
    for (let column = Math.floor((start * columns) / total); column < columns && (total * column) / columns < end; column += 1) {
      most[column][kind] += Math.max(0, Math.min(end, (total * (column + 1)) / columns) - Math.max(start, (total * column) / columns));
    }
  });
  const [hot, small, large, shared] = sums;
  return { hot, small, large, shared, columns: most.map((each) => CLASSES[each.indexOf(Math.max(...each))]) };
}
