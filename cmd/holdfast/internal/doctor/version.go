package doctor

import (
	"context"
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

// An engineProblem is a known flaw of the script engine. It is in every release since the first
// that has it, up to the first repaired one of its line. A line without one is repaired if it is
// newer than those that have.
type engineProblem struct {
	name, means string
	since       release
	repaired    []release
}

const takenOver = "a client that may send scripts may take over the server's process"

// flaws are those of each product, as the advisories have them. The releases that repair
// CVE-2025-49844 also repair CVE-2024-31449, CVE-2024-46981 and CVE-2025-46817 to 46819.
var flaws = map[string][]engineProblem{
	"Redis": {{name: "CVE-2025-49844", means: takenOver,
		repaired: []release{{6, 2, 20}, {7, 2, 11}, {7, 4, 6}, {8, 0, 4}, {8, 2, 2}}}},
	"Valkey": {
		{name: "CVE-2025-49844", means: takenOver, repaired: []release{{7, 2, 11}, {8, 0, 6}, {8, 1, 4}}},
		{name: "CVE-2025-67733", means: "a client that may send scripts may forge answers to others on its connection",
			repaired: []release{{7, 2, 12}, {8, 0, 7}, {8, 1, 6}, {9, 0, 2}}},
		{name: "GHSA-fq2f-crmw-q97r", means: "a client without a password may reach freed memory of the engine",
			since: release{9, 1, 0}, repaired: []release{{9, 1, 2}}},
	},
}

// isIn reports whether a release may have the flaw, and which release to install then.
func (f engineProblem) isIn(r release) (found bool, install release) {
	for _, fix := range f.repaired {
		if r.isBefore(fix) || fix[0] == r[0] && fix[1] == r[1] {
			return r.isBefore(fix) && !r.isBefore(f.since), fix
		}
	}
	return false, release{}
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
	default:
		p.flaws(check, product, said, r)
	}
}

// flaws checks a release for known flaws of the script engine.
func (p *serverCheck) flaws(check, product, said string, r release) {
	var names, means []string
	var newest release
	for _, f := range flaws[product] {
		if found, install := f.isIn(r); found {
			names, means = append(names, f.name), append(means, f.name+": "+f.means)
			if newest.isBefore(install) {
				newest = install
			}
		}
	}
	if len(names) == 0 {
		p.ok(check, said)
		return
	}
	p.add(Note, check, said, strings.Join(means, "; ")+"; a distribution may have repaired it under the same version",
		fmt.Sprintf("install %s %d.%d.%d or newer, or a package that names %s", product, newest[0], newest[1], newest[2],
			strings.Join(names, " and ")))
}

// infoText is the answer of INFO, by field.
type infoText map[string]string

// infoSections are asked for one by one: INFO of version 6.2 takes one section, and a server may
// have a long default answer.
var infoSections = []string{"server", "memory", "persistence", "replication", "cpu", "cluster"}

func (p *serverCheck) askInfo(ctx context.Context, sections ...string) (infoText, error) {
	info := infoText{}
	for _, section := range sections {
		answer, err := p.do(ctx, "INFO", section)
		if err != nil {
			return nil, err
		}
		text, _ := answer.(string)
		info.read(text)
	}
	if len(info) == 0 {
		return nil, fmt.Errorf("the answer of INFO is empty")
	}
	return info, nil
}

func (i infoText) read(text string) {
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			i[name] = value
		}
	}
}

// number is a field; -1 if it is none.
func (i infoText) number(name string) int64 {
	n, err := strconv.ParseInt(i[name], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// seconds is a field that counts seconds; -1 if it is none.
func (i infoText) seconds(name string) float64 {
	n, err := strconv.ParseFloat(i[name], 64)
	if err != nil {
		return -1
	}
	return n
}

// whyUnknown says why INFO does not tell.
func (p *serverCheck) whyUnknown() string {
	if p.noInfo != nil {
		return errorText(p.noInfo)
	}
	return "INFO has no such line"
}

// howToTell says how to make the server tell.
func (p *serverCheck) howToTell() string {
	switch {
	case p.noInfo == nil:
	case strings.Contains(p.noInfo.Error(), "section (server) is not supported"): // miniredis
		return "nothing, if this is holdfast dev: examine the server that your programs will use"
	case isDenial(p.noInfo.Error()) && !strings.Contains(p.noInfo.Error(), "unknown"):
		return "let the user send INFO: ACL SETUSER USER +info"
	}
	return "look at the parameters of the service, or ask its operators"
}
