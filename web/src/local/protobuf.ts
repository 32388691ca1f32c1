/* protobuf: iterates over the fields of a message; varints are exact up to 2^53. */
import { LocalError } from "./profile.ts";

export class Message {
  field = 0;
  /** Wire types: 0 varint, 1 eight bytes, 2 bytes, 5 four bytes. */
  wire = 0;

  constructor(
    private readonly data: Uint8Array,
    private at = 0,
    private readonly end = data.length,
  ) {}

  /** Moves to the next field. The value must be read or skipped before the next call. */
  next(): boolean {
    if (this.at >= this.end) return false;
    const tag = this.unsigned();
    this.field = Math.floor(tag / 8);
    this.wire = tag % 8;
    if (this.field === 0) throw new LocalError("This is not a pprof file: a field number is 0.");
    return true;
  }

  /** The 64 bits of a varint as low and high half. */
  private varint(): [low: number, high: number] {
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.at >= this.end) throw new LocalError("The pprof file is cut off.");
      const byte = this.data[this.at++];
      const bits = byte & 127;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high |= bits >>> 4;
      } else high |= bits << (shift - 32);
      if (byte < 128) return [low >>> 0, high >>> 0];
    }
    throw new LocalError("This is not a pprof file: a number is too long.");
  }

  unsigned(): number {
    const [low, high] = this.varint();
    return high * 2 ** 32 + low;
  }
  /** All 64 bits, for addresses. */
  exact(): bigint {
    const [low, high] = this.varint();
    return (BigInt(high) << 32n) | BigInt(low);
  }
  signed(): number {
    const [low, high] = this.varint();
    return (high | 0) * 2 ** 32 + low;
  }

  private span(): [from: number, to: number] {
    const length = this.unsigned();
    const from = this.at;
    if (length > this.end - from) throw new LocalError("The pprof file is cut off.");
    this.at = from + length;
    return [from, this.at];
  }
  bytes(): Uint8Array {
    this.need(2);
    const [from, to] = this.span();
    return this.data.subarray(from, to);
  }
  message(): Message {
    this.need(2);
    const [from, to] = this.span();
    return new Message(this.data, from, to);
  }
  /** The numbers of a repeated field, packed or not. */
  numbers(isSigned: boolean, push: (value: number) => void): void {
    if (this.wire === 0) return push(isSigned ? this.signed() : this.unsigned());
    const packed = this.message();
    while (packed.at < packed.end) push(isSigned ? packed.signed() : packed.unsigned());
  }

  skip(): void {
    if (this.wire === 0) this.varint();
    else if (this.wire === 2) this.span();
    else if (this.wire === 1 || this.wire === 5) {
      this.at += this.wire === 1 ? 8 : 4;
      if (this.at > this.end) throw new LocalError("The pprof file is cut off.");
    } else throw new LocalError("This is not a pprof file: a field has an unknown kind.");
  }

  /** The position of the next field. */
  get offset(): number {
    return this.at;
  }
  /** The bytes from an earlier `offset` to the current one. */
  since(offset: number): Uint8Array {
    return this.data.subarray(offset, this.at);
  }

  private need(wire: number): void {
    if (this.wire !== wire)
      throw new LocalError(`This is not a pprof file: field ${this.field} has the wrong kind.`);
  }
}
