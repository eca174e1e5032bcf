// How a vector is judged.

const KEYS = ["trust", "revoked", "threshold", "now", "compatible", "floor", "allow-unsigned"];

/** The policy of a vector. One that has none is unsigned at worst, at a moment before all expiry, and fits what device there is. */
export function policyOf(keys, head) {
  if (!KEYS.some((key) => key in keys)) {
    return { now: Number.MIN_SAFE_INTEGER, compatible: head?.compatible, allowUnsigned: true };
  }
  return {
    allowedSigners: (keys.trust ?? []).join("\n"),
    now: Number(keys.now?.[0] ?? 1_700_000_000),
    threshold: Number(keys.threshold?.[0] ?? 1),
    compatible: keys.compatible ?? [],
    revoked: (keys.revoked ?? []).join("\n"),
    floor: keys.floor?.[0],
    allowUnsigned: keys["allow-unsigned"]?.[0] === "yes",
  };
}

/** Whether a reader that makes no objects finds what a vector expects. */
export function isRead(keys) {
  return !keys.needs[0].split(" ").includes("making");
}

/** What a vector expects of who reads it without the bases of delta bundles, and how deeply it is to be read. */
export function expectationOf(keys) {
  const check = keys.check?.[0] ?? "deep";
  const expected = check === "apply" ? "ok" : keys.expect[0];
  return { expected: isRead(keys) ? expected : "ok", deep: ["deep", "apply", "volume"].includes(check) };
}

/** What the package's `openBundle` finds of a vector, in one word. */
export async function wordOf(openBundle, source, keys, options) {
  let bundle;
  try {
    bundle = await openBundle(source, policyOf(keys));
    const verdict = await bundle.judge(policyOf(keys, bundle.head));
    if (verdict.error) return verdict.error.code;
    await bundle.verify({ deep: expectationOf(keys).deep, ...options });
    return "ok";
  } catch (error) {
    if (error.name !== "SealiftError") throw error;
    return error.code;
  } finally {
    bundle?.close();
  }
}
