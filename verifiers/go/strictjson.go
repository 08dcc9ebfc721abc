package verifier

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is the greatest nesting. It is the same in all verifiers, because the limits of JSON parsers differ.
const maxDepth = 128

// parseObject parses a JSON object. It returns false for anything else, and for texts that two parsers could read
// differently: text that is not UTF-8, a duplicate member (RFC 7519 section 4), an unpaired surrogate (RFC 7493 section
// 2.1), deeper nesting than maxDepth. Numbers become float64; numbers out of range become infinite.
func parseObject(text string) (map[string]any, bool) {
	if !utf8.ValidString(text) {
		return nil, false
	}
	p := &jsonParser{text: text}
	p.space()
	if p.peek() != '{' {
		return nil, false
	}
	object, ok := p.object(1)
	p.space()
	return object, ok && p.at == len(text)
}

type jsonParser struct {
	text string
	at   int
}

// peek returns the next byte, and 0 at the end.
func (p *jsonParser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *jsonParser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// take consumes the byte c and the white space around it. It returns false if the next byte is another one.
func (p *jsonParser) take(c byte) bool {
	p.space()
	if p.peek() != c {
		return false
	}
	p.at++
	p.space()
	return true
}

func (p *jsonParser) value(depth int) (any, bool) {
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.list(depth)
	case c == '"':
		return p.string()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	return p.word()
}

func (p *jsonParser) word() (any, bool) {
	rest := p.text[p.at:]
	switch {
	case strings.HasPrefix(rest, "true"):
		p.at += 4
		return true, true
	case strings.HasPrefix(rest, "false"):
		p.at += 5
		return false, true
	case strings.HasPrefix(rest, "null"):
		p.at += 4
		return nil, true
	}
	return nil, false
}

func (p *jsonParser) object(depth int) (map[string]any, bool) {
	members := map[string]any{}
	if depth > maxDepth || !p.take('{') {
		return nil, false
	}
	if p.take('}') {
		return members, true
	}
	for {
		name, ok := p.string()
		if _, isDuplicate := members[name]; !ok || isDuplicate || !p.take(':') {
			return nil, false
		}
		if members[name], ok = p.value(depth + 1); !ok {
			return nil, false
		}
		if !p.take(',') {
			return members, p.closed('}')
		}
	}
}

func (p *jsonParser) list(depth int) ([]any, bool) {
	items := []any{}
	if depth > maxDepth || !p.take('[') {
		return nil, false
	}
	if p.take(']') {
		return items, true
	}
	for {
		item, ok := p.value(depth + 1)
		if !ok {
			return nil, false
		}
		items = append(items, item)
		if !p.take(',') {
			return items, p.closed(']')
		}
	}
}

func (p *jsonParser) closed(c byte) bool {
	p.space()
	if p.peek() != c {
		return false
	}
	p.at++
	return true
}

func (p *jsonParser) digits() bool {
	start := p.at
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.at++
	}
	return p.at > start
}

func (p *jsonParser) number() (any, bool) {
	start := p.at
	if p.peek() == '-' {
		p.at++
	}
	if p.peek() == '0' {
		p.at++
	} else if !p.digits() {
		return nil, false
	}
	if p.peek() == '.' {
		if p.at++; !p.digits() {
			return nil, false
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if !p.digits() {
			return nil, false
		}
	}
	// For a number out of range ParseFloat returns an infinite value and an error. The value is used.
	value, _ := strconv.ParseFloat(p.text[start:p.at], 64)
	return value, true
}
