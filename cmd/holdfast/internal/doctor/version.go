package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A release is a version in three numbers.
type release [3]int

func releaseOf(text string) (r release, ok bool) {
	text, _, _ = strings.Cut(text, "-")
	parts := strings.SplitN(text, ".", 3)
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return release{}, false
		}
		r[i] = n
	}
	return r, len(parts) >= 2
}

func (r release) isBefore(other release) bool { return slices.Compare(r[:], other[:]) < 0 }

// oldest is the first version whose commands the scripts need.
var oldest = release{6, 2, 0}

// repaired are the first releases of each line in which CVE-2025-49844 is repaired: a script may
// take over the server's process. Every later line has it repaired.
var repaired = map[string][]release{
	"Redis":  {{6, 2, 20}, {7, 2, 11}, {7, 4, 6}, {8, 0, 4}, {8, 2, 2}},
	"Valkey": {{7, 2, 11}, {8, 0, 6}, {8, 1, 4}},
}

// hasFlaw reports whether a release may have the flaw: it is older than the repaired release of its
// line, or its line has none and is older than the last that has one.
func hasFlaw(product string, r release) bool {
	fixes := repaired[product]
	for _, fix := range fixes {
		if fix[0] == r[0] && fix[1] == r[1] {
			return r.isBefore(fix)
		}
	}
	return len(fixes) > 0 && r.isBefore(fixes[len(fixes)-1])
}

func (p *serverCheck) version() {
	const check = "version"
	product, text := "Redis", p.info["redis_version"]
	if valkey := p.info["valkey_version"]; valkey != "" {
		product, text = "Valkey", valkey // its redis_version is what it is compatible with
	}
	r, ok := releaseOf(text)
	switch said := strings.TrimSpace(product + " " + text); {
	case text == "":
		p.add(Unknown, check, "not told: "+p.whyUnknown(), "a version before 6.2 lacks commands of the scripts",
			p.howToTell())
	case !ok:
		p.add(Note, check, fmt.Sprintf("%q is no version that is known here", text),
			"it must have all commands of Redis 6.2", "")
	case r.isBefore(oldest):
		p.add(Danger, check, said, "the scripts need commands of Redis 6.2: locks fail",
			"install Redis 6.2 or newer, or Valkey")
	case hasFlaw(product, r):
		p.add(Note, check, said, "CVE-2025-49844: a client that may send scripts may take over the server's process; "+
			"a distribution may have repaired it under the same version", "install "+repairedReleases(product)+", or a package that names this CVE")
	default:
		p.ok(check, said)
	}
}

func repairedReleases(product string) string {
	var names []string
	for _, r := range repaired[product] {
		names = append(names, fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]))
	}
	return product + " " + strings.Join(names, ", ") + " or newer"
}
