package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

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

// read adds the lines of a text.
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
