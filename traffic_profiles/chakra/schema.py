"""The v0.0.4 protobuf schema, as message classes in a pool of their own.

Other software in the same process may bring its own `et_def.proto`; a second file or package of
that name is an error in protobuf's default pool, so ours never enters it. The only module that
imports protobuf.

*Source*: mlcommons/chakra `schema/protobuf/et_def.proto`, v0.0.4: field numbers and types.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["AttributeProto", "GlobalMetadata", "Node"]

_PACKAGE = "rankwire.chakra"
_FILE = "rankwire/chakra/trace.proto"
_Field = descriptor_pb2.FieldDescriptorProto

# Alternatives of AttributeProto.value in the order of their field numbers: 3 and 4 for the first
# and its list, 5 and 6 for the second, and so on.
_ALTERNATIVES = (
    ("double", "DoubleList", _Field.TYPE_DOUBLE),
    ("float", "FloatList", _Field.TYPE_FLOAT),
    ("int32", "Int32List", _Field.TYPE_INT32),
    ("int64", "Int64List", _Field.TYPE_INT64),
    ("uint32", "Uint32List", _Field.TYPE_UINT32),
    ("uint64", "Uint64List", _Field.TYPE_UINT64),
    ("sint32", "Sint32List", _Field.TYPE_SINT32),
    ("sint64", "Sint64List", _Field.TYPE_SINT64),
    ("fixed32", "Fixed32List", _Field.TYPE_FIXED32),
    ("fixed64", "Fixed64List", _Field.TYPE_FIXED64),
    ("sfixed32", "Sfixed32List", _Field.TYPE_SFIXED32),
    ("sfixed64", "Sfixed64List", _Field.TYPE_SFIXED64),
    ("bool", "BoolList", _Field.TYPE_BOOL),
    ("string", "StringList", _Field.TYPE_STRING),
    ("bytes", "BytesList", _Field.TYPE_BYTES),
)


def _add_message(
    file: descriptor_pb2.FileDescriptorProto,
    name: str,
    fields: list[tuple[str, int, "_Field.Type.ValueType | str", bool]],
) -> descriptor_pb2.DescriptorProto:
    """Add a message; a field is name, number, type (or message name), and whether it repeats."""
    message = file.message_type.add(name=name)
    for field_name, number, kind, repeated in fields:
        label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
        field = message.field.add(name=field_name, number=number, label=label)
        if isinstance(kind, str):
            field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
        else:
            field.type = kind
    return message


def _add_attribute(file: descriptor_pb2.FileDescriptorProto) -> None:
    message = _add_message(
        file,
        "AttributeProto",
        [("name", 1, _Field.TYPE_STRING, False), ("doc_string", 2, _Field.TYPE_STRING, False)],
    )
    message.oneof_decl.add(name="value")
    for index, (stem, list_name, kind) in enumerate(_ALTERNATIVES):
        _add_message(file, list_name, [("values", 1, kind, True)])
        message.field.add(
            name=f"{stem}_val",
            number=3 + 2 * index,
            label=_Field.LABEL_OPTIONAL,
            type=kind,
            oneof_index=0,
        )
        message.field.add(
            name=f"{stem}_list",
            number=4 + 2 * index,
            label=_Field.LABEL_OPTIONAL,
            type=_Field.TYPE_MESSAGE,
            type_name=f".{_PACKAGE}.{list_name}",
            oneof_index=0,
        )


def _schema() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name=_FILE, package=_PACKAGE, syntax="proto3")
    _add_attribute(file)
    text = _Field.TYPE_STRING
    _add_message(
        file,
        "GlobalMetadata",
        [("version", 1, text, False), ("attr", 2, "AttributeProto", True)],
    )
    _add_message(
        file,
        "IOInfo",
        [("values", 1, text, False), ("shapes", 2, text, False), ("types", 3, text, False)],
    )
    # The type of a node is an enumeration there and a number here: the wire is the same, and
    # numbers that are unknown to us pass.
    _add_message(
        file,
        "Node",
        [
            ("id", 1, _Field.TYPE_UINT64, False),
            ("name", 2, text, False),
            ("type", 3, _Field.TYPE_INT32, False),
            ("ctrl_deps", 4, _Field.TYPE_UINT64, True),
            ("data_deps", 5, _Field.TYPE_UINT64, True),
            ("start_time_micros", 6, _Field.TYPE_UINT64, False),
            ("duration_micros", 7, _Field.TYPE_UINT64, False),
            ("inputs", 8, "IOInfo", False),
            ("outputs", 9, "IOInfo", False),
            ("attr", 10, "AttributeProto", True),
        ],
    )
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_schema())


def _message_class(name: str) -> Any:
    descriptor = _POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}")
    return message_factory.GetMessageClass(descriptor)


Node: Any = _message_class("Node")
"""Message class of a node."""
GlobalMetadata: Any = _message_class("GlobalMetadata")
"""Message class of the file's first message."""
AttributeProto: Any = _message_class("AttributeProto")
"""Message class of a named value."""
