/*
 * protobuf_writer: writes a message field by field. Numbers are integers up to 2^53, or
 * non-negative bigints.
 */

export class MessageWriter {
  private data = new Uint8Array(64);
  private size = 0;

  private need(count: number): void {
    if (this.size + count <= this.data.length) return;
    const wider = new Uint8Array(Math.max(this.data.length * 2, this.size + count));
    wider.set(this.data.subarray(0, this.size));
    this.data = wider;
  }

  /** Negative numbers as 64 bits in two's complement. */
  varint(value: number | bigint): void {
    this.need(10);
    let low = Number(typeof value === "bigint" ? value & 0xffffffffn : value >>> 0);
    let high = Number(typeof value === "bigint" ? value >> 32n : Math.floor(value / 2 ** 32) >>> 0);
    while (high !== 0 || low > 127) {
      this.data[this.size++] = (low & 127) | 128;
      low = ((low >>> 7) | (high << 25)) >>> 0;
      high >>>= 7;
    }
    this.data[this.size++] = low;
  }

  raw(bytes: Uint8Array): void {
    this.need(bytes.length);
    this.data.set(bytes, this.size);
    this.size += bytes.length;
  }

  /** Writes a number. Zero is the default of a missing field and is left out. */
  number(field: number, value: number | bigint): void {
    if (!value) return;
    this.varint(field * 8);
    this.varint(value);
  }
  bytes(field: number, bytes: Uint8Array): void {
    this.varint(field * 8 + 2);
    this.varint(bytes.length);
    this.raw(bytes);
  }
  message(field: number, write: (inner: MessageWriter) => void): void {
    const inner = new MessageWriter();
    write(inner);
    this.bytes(field, inner.take());
  }
  /** Writes nothing for an empty list. */
  packed(field: number, values: readonly number[]): void {
    if (values.length === 0) return;
    this.message(field, (inner) => {
      for (const value of values) inner.varint(value);
    });
  }

  /** A view of the written bytes; invalid once more is written. */
  take(): Uint8Array<ArrayBuffer> {
    return this.data.subarray(0, this.size);
  }
}
