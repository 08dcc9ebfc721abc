package verifier

import (
	"regexp"
	"strings"
)

// urlParts matches scheme, host, port and path. The host is a name, an IPv4 address or an IPv6 address, without
// credentials. The flag for ignoring case is not used, because it would also match letters beyond ASCII, such as ſ.
var urlParts = regexp.MustCompile(
	`^([Hh][Tt][Tt][Pp][Ss]?)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]*))?(/[^?#]*)?(?:[?#]|$)`,
)

// proofURL returns a URL without query and fragment, normalized by its syntax and scheme (RFC 3986 sections 6.2.2 and
// 6.2.3). The result is false if the text is no http(s) URL, has credentials, or has a host that is not in ASCII.
func proofURL(text string) (string, bool) {
	parts := urlParts.FindStringSubmatch(text)
	if parts == nil {
		return "", false
	}
	scheme, authority, port, path := lowerASCII(parts[1]), lowerASCII(parts[2]), parts[3], parts[4]
	isDefault := scheme == "http" && port == "80" || scheme == "https" && port == "443"
	if port != "" && !isDefault {
		authority += ":" + port
	}
	if path == "" {
		path = "/"
	}
	return scheme + "://" + authority + removeDotSegments(normalizeEscapes(path)), true
}

const hexDigits = "0123456789ABCDEF"

// normalizeEscapes escapes characters that a path must not contain (RFC 3986 section 3.3), and decodes escapes that are
// not needed.
func normalizeEscapes(path string) string {
	var normalized strings.Builder
	for at := 0; at < len(path); at++ {
		c := path[at]
		if c == '%' && at+2 < len(path) && isHex(path[at+1]) && isHex(path[at+2]) {
			c = fromHex(path[at+1])<<4 | fromHex(path[at+2])
			at += 2
			if isUnreserved(c) {
				normalized.WriteByte(c)
				continue
			}
		} else if isUnreserved(c) || strings.IndexByte("%!$&'()*+,;=:@/", c) >= 0 {
			normalized.WriteByte(c)
			continue
		}
		normalized.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
	}
	return normalized.String()
}

// isUnreserved returns whether a character never needs an escape (RFC 3986 section 2.3).
func isUnreserved(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'F' || c >= 'a' && c <= 'f'
}

func fromHex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&15 + 9
}

// removeDotSegments resolves the segments `.` and `..` of an absolute path (RFC 3986 section 5.2.4).
func removeDotSegments(path string) string {
	segments := strings.Split(path, "/")[1:]
	kept := make([]string, 0, len(segments)+1)
	for index, segment := range segments {
		isDots := segment == "." || segment == ".."
		if segment == ".." && len(kept) > 0 {
			kept = kept[:len(kept)-1]
		}
		if !isDots {
			kept = append(kept, segment)
		} else if index == len(segments)-1 {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}
