package protocol

// Match reports whether a glob pattern of Redis matches a whole text, byte by byte, as the server's
// own SCAN and KEYS match: "*", "?", "[a-z]", "[^a]", and "\" before what stands for itself.
func Match(pattern, text string) bool {
	star, from := -1, 0 // where the last "*" stood, and where what follows it was last tried
	p, t := 0, 0
	for t < len(text) {
		if p < len(pattern) && pattern[p] == '*' {
			star, from = p, t
			p++
			continue
		}
		if p < len(pattern) {
			if length, ok := matchByte(pattern[p:], text[t]); ok {
				p += length
				t++
				continue
			}
		}
		if star < 0 {
			return false
		}
		from++
		p, t = star+1, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchByte reports whether the first part of a pattern, which is no "*", matches a byte, and how
// long that part is.
func matchByte(pattern string, c byte) (length int, ok bool) {
	switch {
	case pattern[0] == '?':
		return 1, true
	case pattern[0] == '[':
		return matchClass(pattern, c)
	case pattern[0] == '\\' && len(pattern) > 1:
		return 2, pattern[1] == c
	}
	return 1, pattern[0] == c
}

// matchClass is matchByte for "[...]". A class that is not closed ends with the pattern.
func matchClass(pattern string, c byte) (length int, ok bool) {
	at := 1
	not := at < len(pattern) && pattern[at] == '^'
	if not {
		at++
	}
	for ; at < len(pattern) && pattern[at] != ']'; at++ {
		switch rest := pattern[at:]; {
		case rest[0] == '\\' && len(rest) > 1:
			at++
			ok = ok || pattern[at] == c
		case len(rest) > 2 && rest[1] == '-':
			ok = ok || min(rest[0], rest[2]) <= c && c <= max(rest[0], rest[2])
			at += 2
		default:
			ok = ok || rest[0] == c
		}
	}
	return min(at+1, len(pattern)), ok != not
}

// EscapeGlob is a pattern that matches this text alone.
func EscapeGlob(text string) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		switch text[i] {
		case '*', '?', '[', ']', '\\':
			out = append(out, '\\')
		}
		out = append(out, text[i])
	}
	return string(out)
}
