package profile

import "encoding/binary"

// A message is one of Protocol Buffers.
type message []byte

// The wire types of fields.
const (
	varint = 0
	sized  = 2
)

// number appends a field that is a number. The default of a field may be left out, but not an
// element of a list: so 0 is written.
func (m *message) number(field int, value uint64) {
	*m = binary.AppendUvarint(*m, uint64(field<<3|varint))
	*m = binary.AppendUvarint(*m, value)
}

// bytes appends a field that is a text.
func (m *message) bytes(field int, value []byte) {
	*m = binary.AppendUvarint(*m, uint64(field<<3|sized))
	*m = binary.AppendUvarint(*m, uint64(len(value)))
	*m = append(*m, value...)
}

// embed appends a field that is a message.
func (m *message) embed(field int, value message) { m.bytes(field, value) }
