// Times and sizes in words.

export function clock(ms: number): string {
  const two = (n: number): string => String(n).padStart(2, "0");
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** The time of day without seconds. */
export function minute(ms: number): string {
  return clock(ms).slice(0, 5);
}

export function day(ms: number, now: number): string {
  const at = new Date(ms);
  return at.toDateString() === new Date(now).toDateString()
    ? "today"
    : at.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

export function ago(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

export function size(bytes: number): string {
  return bytes < 1000 ? `${bytes} bytes` : `${(bytes / 1000).toFixed(1)} KB`;
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}
