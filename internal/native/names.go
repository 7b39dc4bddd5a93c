package native

import (
	"context"
	"iter"
	"strings"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Names implements protocol.Operators. A name that is held and waited for has two keys, and comes
// twice. The pattern is compared here: in a key, the name is escaped.
func (p *Protocol) Names(ctx context.Context, pattern string) iter.Seq2[protocol.FoundName, error] {
	return func(yield func(protocol.FoundName, error) bool) {
		head := p.config.Prefix + ":"
		for key, err := range wire.Scan(ctx, p.servers, protocol.EscapeGlob(head)+"*", p.config.Timeout) {
			if err != nil {
				if p.config.Node != "" {
					err = wire.At(p.config.Node, err)
				}
				yield(protocol.FoundName{}, err)
				return
			}
			rest, ok := strings.CutPrefix(key, head)
			if !ok {
				continue
			}
			name, is := readKey(rest)
			found := protocol.FoundName{Name: name}
			switch {
			case is == keyOfName && protocol.Match(pattern, name):
			case is == keyForeign && protocol.Match(pattern, rest):
				found = protocol.FoundName{Foreign: key}
			default:
				continue
			}
			if !yield(found, nil) {
				return
			}
		}
	}
}

// A keyUse is what a key under the prefix is for.
type keyUse int

const (
	keyForeign keyUse = iota // none of ours
	keyOfName                // its name is held, waited for or a latch
	keyBeside                // ours, but of no name that is in use
)

// readKey reads what follows the prefix in a key, and the name in it.
func readKey(rest string) (name string, is keyUse) {
	tag, suffix, ok := strings.Cut(strings.TrimPrefix(rest, "{"), "}")
	if !ok || tag == "" || rest[0] != '{' {
		return "", keyForeign
	}
	switch suffix {
	case "", ":queue":
		if name, ok := unescape(tag); ok {
			return name, keyOfName
		}
	case ":watchers", ":once":
		if _, ok := unescape(tag); ok {
			return "", keyBeside
		}
	case ":clock", ":ready":
		if tag == wire.SlotTag(wire.SlotOf(tag)) {
			return "", keyBeside
		}
	}
	if tag == quorumTag || suffix == "" && strings.HasPrefix(tag, historyTag) {
		return "", keyBeside
	}
	return "", keyForeign
}

// quorumTag is in the keys of a quorum, of which a server may be a node. It is no name's.
const quorumTag = "%quorum"

// unescape is the name that was escaped. It is false if no name is escaped so.
func unescape(tag string) (string, bool) {
	name := strings.NewReplacer("%25", "%", "%7D", "}").Replace(tag)
	return name, escape(name) == tag
}
