import { expect, test } from "vitest";
import { formatAge, formatBytes, formatCount, formatSeconds, formatTime } from "./format.ts";

test("counts have separators", () => {
  expect(formatCount(1_234_567n)).toBe("1,234,567");
});

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1_500, "1.5 kB"],
  [123_456_789, "123 MB"],
])("%i bytes are %s", (bytes, text) => expect(formatBytes(bytes)).toBe(text));

test("times are readable, and show milliseconds where there are some", () => {
  expect(formatTime(0)).toBe("1970-01-01 00:00:00 UTC");
  expect(formatTime(1_500)).toBe("1970-01-01 00:00:01.500 UTC");
  expect(formatTime(Number.NaN)).toBe("NaN");
});

test.each([
  [2.5, "2.5 s"],
  [0.0123, "12.3 ms"],
  [0.00005, "50 µs"],
])("%f seconds are %s", (seconds, text) => expect(formatSeconds(seconds)).toBe(text));

test("ages have the largest fitting unit", () => {
  const now = Date.UTC(2026, 0, 31);
  expect(formatAge(now - 5_000, now)).toBe("just now");
  expect(formatAge(now - 3 * 3_600_000, now)).toBe("3 hours ago");
  expect(formatAge(now - 2 * 86_400_000, now)).toBe("2 days ago");
});
