/** Returns a decimal with all its digits; Arrow keeps it in words of 32 bits, the lowest first. */
export function decimalText(words: Uint32Array, scale: number): string {
  const whole = [...words].reduceRight((sum, word) => (sum << 32n) | BigInt(word), 0n);
  const value = BigInt.asIntN(words.length * 32, whole);
  const digits = (value < 0n ? -value : value).toString().padStart(scale + 1, "0");
  const point = digits.length - scale;
  const zeros = digits === "0" ? "" : "0".repeat(Math.max(0, -scale));
  const text = scale <= 0 ? `${digits}${zeros}` : `${digits.slice(0, point)}.${digits.slice(point)}`;
  return value < 0n ? `-${text}` : text;
}
