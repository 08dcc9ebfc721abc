package verifier

import (
	"strconv"
	"strings"
	"unicode/utf16"
)

var escapes = map[byte]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// string parses a JSON string.
func (p *jsonParser) string() (string, bool) {
	if p.peek() != '"' {
		return "", false
	}
	p.at++
	start := p.at
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return p.text[start : p.at-1], true
		case c == '\\':
			return p.escaped(p.text[start:p.at])
		case c < 0x20:
			return "", false
		}
	}
	return "", false
}

// escaped parses the rest of a string that has escapes.
func (p *jsonParser) escaped(begin string) (string, bool) {
	var text strings.Builder
	text.WriteString(begin)
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch {
		case c == '"':
			return text.String(), true
		case c < 0x20:
			return "", false
		case c != '\\':
			text.WriteByte(c)
		case p.peek() == 'u':
			r, ok := p.codePoint()
			if !ok {
				return "", false
			}
			text.WriteRune(r)
		default:
			plain, ok := escapes[p.peek()]
			if !ok {
				return "", false
			}
			p.at++
			text.WriteByte(plain)
		}
	}
	return "", false
}

// codePoint parses the rest of an escape such as `\u00e9`, or of two escapes that form a pair of surrogates.
func (p *jsonParser) codePoint() (rune, bool) {
	first, ok := p.unit()
	if !ok || !utf16.IsSurrogate(first) {
		return first, ok
	}
	if p.peek() != '\\' {
		return 0, false
	}
	p.at++
	second, ok := p.unit()
	r := utf16.DecodeRune(first, second)
	return r, ok && r != '\ufffd'
}

func (p *jsonParser) unit() (rune, bool) {
	if p.peek() != 'u' || p.at+5 > len(p.text) {
		return 0, false
	}
	digits := p.text[p.at+1 : p.at+5]
	p.at += 5
	// ParseUint accepts neither signs nor, with an explicit base, underscores.
	value, err := strconv.ParseUint(digits, 16, 32)
	return rune(value), err == nil
}
