// Package top shows locks on a full screen, and keeps showing them: from servers, once a second, or
// from a capture.
//
// The screen is a Model of bubbletea: Update changes its state by a message, and View draws the
// state. Whatever takes time is a command of bubbletea, whose result is a message again. So the
// screen goes on while a server is silent.
package top
