package mutant

// commandMutants are bugs in the command and in the dashboard.
func commandMutants() []Mutant {
	const cmd = "cmd/holdfast/"
	return []Mutant{
		{"a ticket lost in a pipe without a reader", command("TestScripts/acquire"), []Patch{{cmd + "latch.go",
			"\t\toutliveReaders()\n", ""}}},
		{"a ticket lost in a closed output", command("TestScripts/acquire"), []Patch{{cmd + "acquire.go",
			"&& isClosed(a.Out)", "&& false"}}},
		{"the exit code of a refusal lost with its text", command("TestScripts/busy"), []Patch{{cmd + "main.go",
			"\t\toutliveReaders() // the exit code tells it too\n", ""}}},
		{"what a killed process left beside a ticket kept", command("TestTicketFile"), []Patch{{cmd + "ticketfile.go",
			"if err = os.Remove(path); err != nil", "if err = nil; err != nil"}}},
	}
}
