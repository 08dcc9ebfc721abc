/** Finds the descriptors of a server for the queries of reflection: by file, by symbol, by extension. */
import {
  createRegistry,
  type DescEnum,
  type DescExtension,
  type DescFile,
  type DescMessage,
  type DescService,
  type Registry,
  toBinary,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

export class Files {
  readonly #byName = new Map<string, DescFile>();
  readonly #bySymbol = new Map<string, DescFile>();
  readonly #types: Registry;
  readonly #bytes = new Map<DescFile, Uint8Array>();

  /** @param files the files and everything that they import */
  constructor(files: Iterable<DescFile>) {
    for (const file of files) this.#add(file);
    this.#types = createRegistry(...this.#byName.values());
  }

  byName(name: string): DescFile | undefined {
    return this.#byName.get(name);
  }

  /** Returns the file that declares a symbol. @param symbol the full name of a declaration: a service, a method, a message, a field … */
  bySymbol(symbol: string): DescFile | undefined {
    return this.#bySymbol.get(symbol);
  }

  byExtension(message: string, number: number): DescFile | undefined {
    const extended = this.#types.getMessage(message);
    return extended && this.#types.getExtensionFor(extended, number)?.file;
  }

  /** Returns the numbers of all extensions of a message, ascending; undefined if there is no such message. */
  extensionNumbers(message: string): readonly number[] | undefined {
    if (this.#types.getMessage(message) === undefined) return undefined;
    return [...this.#types]
      .flatMap((type) => (type.kind === "extension" && type.extendee.typeName === message ? [type.number] : []))
      .sort((a, b) => a - b);
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
    for (const type of nestedTypes(file)) {
      this.#bySymbol.set(type.typeName, file);
      // In protobuf, the values of an enum are named in the scope that contains the enum.
      const scope = type.kind === "enum" ? type.typeName.slice(0, -type.name.length) : `${type.typeName}.`;
      for (const { name } of membersOf(type)) this.#bySymbol.set(`${scope}${name}`, file);
    }
    for (const dependency of file.dependencies) this.#add(dependency);
  }
}

/** Returns what a type declares and the registry does not know by its name. */
function membersOf(type: DescMessage | DescEnum | DescExtension | DescService): readonly { readonly name: string }[] {
  if (type.kind === "message") return [...type.fields, ...type.oneofs];
  if (type.kind === "enum") return type.values;
  return type.kind === "service" ? type.methods : [];
}
