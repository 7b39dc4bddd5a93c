// Package still holds goroutines up, for command noise, whose rewritten sources call it.
package still

// Seed is the variable of the environment with the seed; where it is not set, nobody is held up.
const Seed = "HOLDFAST_NOISE"
