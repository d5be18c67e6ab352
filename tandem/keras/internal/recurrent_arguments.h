#pragma once

namespace tandem::keras::internal {

/// What a cell and the layer of it have in common.
inline constexpr auto kCellArguments = [](auto& a, auto& o, auto& units) {
  a("units", units);
  a("activation", o.activation);
  a("use_bias", o.use_bias);
  a("kernel_initializer", o.kernel_initializer);
  a("recurrent_initializer", o.recurrent_initializer);
  a("bias_initializer", o.bias_initializer);
  a("dropout", o.dropout);
  a("recurrent_dropout", o.recurrent_dropout);
  if constexpr (requires { o.recurrent_activation; })
    a("recurrent_activation", o.recurrent_activation);
  if constexpr (requires { o.unit_forget_bias; }) a("unit_forget_bias", o.unit_forget_bias);
  if constexpr (requires { o.reset_after; }) a("reset_after", o.reset_after);
  a("kernel_regularizer", o.kernel_regularizer);
  a("kernel_constraint", o.kernel_constraint);
  a("recurrent_regularizer", o.recurrent_regularizer);
  a("recurrent_constraint", o.recurrent_constraint);
  a("bias_regularizer", o.bias_regularizer);
  a("bias_constraint", o.bias_constraint);
  a("seed", o.seed);
};

/// What the layers have besides.
inline constexpr auto kLoopArguments = [](auto& a, auto& o) {
  a("return_sequences", o.return_sequences);
  a("return_state", o.return_state);
  a("go_backwards", o.go_backwards);
  a("unroll", o.unroll);
  if constexpr (requires { o.zero_output_for_mask; })
    a("zero_output_for_mask", o.zero_output_for_mask);
  else
    a.ignore("zero_output_for_mask");
  a("activity_regularizer", o.activity_regularizer);
};

}  // namespace tandem::keras::internal
