// How often a server that ended is started again: never before it has run, and then only a few times in a while.

const LIMIT = 3;
const WHILE = 3 * 60_000;

/** Counts the ends of one server that nobody asked for. */
export class Crashes {
  private times: number[] = [];

  /** Note an end at a time in milliseconds; whether to start the server again. */
  restartAfter(now: number, hadStarted: boolean): boolean {
    this.times = [...this.times.filter((each) => now - each < WHILE), now];
    return hadStarted && this.times.length <= LIMIT;
  }

  get count(): number {
    return this.times.length;
  }
}
