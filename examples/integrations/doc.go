// Package integrations shows holdfast beside libraries that schedule work or serve requests. It has
// tests alone, in a module of its own: nobody else needs these libraries.
//
//   - Example_asynq: tasks of one customer run one at a time, and the others are tried again later;
//   - Example_gRPC: an interceptor lets a customer have one call at a time;
//   - Example_river: jobs of one customer run one at a time, and the others are snoozed.
package integrations
