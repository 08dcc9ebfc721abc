/** Indexes the descriptors of a server for the queries of reflection: by file, by symbol, by extension. */
import { type DescEnum, type DescExtension, type DescFile, type DescMessage, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

export class Files {
  readonly #byName = new Map<string, DescFile>();
  readonly #bySymbol = new Map<string, DescFile>();
  /** The extensions by the message that they extend, then by their number. */
  readonly #extensions = new Map<string, Map<number, DescFile>>();
  readonly #messages = new Set<string>();
  readonly #bytes = new Map<DescFile, Uint8Array>();

  /** @param files the files and everything that they import */
  constructor(files: Iterable<DescFile>) {
    for (const file of files) this.#add(file);
  }

  byName(name: string): DescFile | undefined {
    return this.#byName.get(name);
  }

  /** Returns the file that declares a symbol. @param symbol the full name of a declaration: a service, a method, a message, a field … */
  bySymbol(symbol: string): DescFile | undefined {
    return this.#bySymbol.get(symbol);
  }

  byExtension(message: string, number: number): DescFile | undefined {
    return this.#extensions.get(message)?.get(number);
  }

  /** Returns the numbers of all extensions of a message, ascending; undefined if there is no such message. */
  extensionNumbers(message: string): readonly number[] | undefined {
    const numbers = this.#extensions.get(message);
    if (numbers !== undefined) return [...numbers.keys()].sort((a, b) => a - b);
    return this.#messages.has(message) ? [] : undefined;
  }

  /** Returns a file as a serialized FileDescriptorProto. */
  encode(file: DescFile): Uint8Array {
    let bytes = this.#bytes.get(file);
    if (bytes === undefined) {
      bytes = toBinary(FileDescriptorProtoSchema, file.proto);
      this.#bytes.set(file, bytes);
    }
    return bytes;
  }

  #add(file: DescFile): void {
    if (this.#byName.has(file.proto.name)) return;
    this.#byName.set(file.proto.name, file);
    for (const message of file.messages) this.#addMessage(message);
    for (const enumeration of file.enums) this.#addEnum(enumeration);
    for (const extension of file.extensions) this.#addExtension(extension);
    for (const service of file.services) {
      this.#bySymbol.set(service.typeName, file);
      for (const { name } of service.methods) this.#bySymbol.set(`${service.typeName}.${name}`, file);
    }
    for (const dependency of file.dependencies) this.#add(dependency);
  }

  #addMessage(message: DescMessage): void {
    const { file, typeName } = message;
    this.#messages.add(typeName);
    this.#bySymbol.set(typeName, file);
    for (const { name } of [...message.fields, ...message.oneofs]) this.#bySymbol.set(`${typeName}.${name}`, file);
    for (const nested of message.nestedMessages) this.#addMessage(nested);
    for (const nested of message.nestedEnums) this.#addEnum(nested);
    for (const nested of message.nestedExtensions) this.#addExtension(nested);
  }

  /** In protobuf, the values of an enum are named in the scope that contains the enum. */
  #addEnum({ file, typeName, values }: DescEnum): void {
    this.#bySymbol.set(typeName, file);
    const scope = typeName.slice(0, typeName.lastIndexOf(".") + 1);
    for (const { name } of values) this.#bySymbol.set(`${scope}${name}`, file);
  }

  #addExtension({ file, typeName, number, extendee }: DescExtension): void {
    this.#bySymbol.set(typeName, file);
    const numbers = this.#extensions.get(extendee.typeName) ?? new Map<number, DescFile>();
    this.#extensions.set(extendee.typeName, numbers.set(number, file));
  }
}
