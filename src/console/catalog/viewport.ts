import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Lines outside of the visible part that are drawn, too, so that scrolling shows no gaps. */
const MARGIN = 10;

/** Lines that are drawn, from `first` up to, but without `end`. */
export interface Range {
  readonly first: number;
  readonly end: number;
}

/** Returns the lines of a scrolled list that are drawn. All lines have the same height, in pixels. */
export function visibleRange(scrolled: number, height: number, lineHeight: number, count: number): Range {
  const first = Math.max(0, Math.floor(scrolled / lineHeight) - MARGIN);
  const end = Math.min(count, Math.ceil((scrolled + height) / lineHeight) + MARGIN);
  return { first: Math.min(first, end), end };
}

/** Follows the visible part of a scrolling element. */
export function useViewport(
  element: RefObject<HTMLElement | null>,
  lineHeight: number,
  count: number,
): Range {
  const [place, setPlace] = useState({ scrolled: 0, height: 800 });
  useEffect(() => {
    const { current } = element;
    if (current === null) return;
    const measure = () => setPlace({ scrolled: current.scrollTop, height: current.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    current.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      current.removeEventListener("scroll", measure);
    };
  }, [element]);
  return visibleRange(place.scrolled, place.height, lineHeight, count);
}
