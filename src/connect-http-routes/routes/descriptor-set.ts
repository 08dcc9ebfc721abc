/** Reads descriptors at run time. All registries of such descriptors are made here. */
import { create, createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { protoCamelCase } from "@bufbuild/protobuf/reflect";
import { type DescriptorProto, type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/**
 * Reads a serialized FileDescriptorSet.
 * @throws Error if the bytes are not one, or if it lacks a file that another one imports
 */
export function readDescriptorSet(bytes: Uint8Array): FileRegistry {
  return createRegistryOf(fromBinary(FileDescriptorSetSchema, bytes).file);
}

/**
 * Makes a registry in which each file comes after those that it imports. Fields without a JSON name get the default name: protoc leaves it
 * out of descriptors that it embeds in Python, Java, C#, C++ and PHP.
 * @throws Error if a file is missing that another one imports
 */
export function createRegistryOf(files: readonly FileDescriptorProto[]): FileRegistry {
  for (const { messageType } of files) messageType.forEach(nameFields);
  return createFileRegistry(create(FileDescriptorSetSchema, { file: [...files] }));
}

function nameFields({ field, nestedType }: DescriptorProto): void {
  for (const each of field) if (each.jsonName === "") each.jsonName = protoCamelCase(each.name);
  nestedType.forEach(nameFields);
}
