// Package show turns what the library tells of locks into text: tables and details for people, and
// JSON for programs.
//
// Names, labels and owners come from others, and may be meant to deceive. Text and Lines show them
// with nothing that a terminal obeys: no escape sequence, no control character, no mark that turns
// the direction of what follows. In JSON such characters are escaped too.
package show
