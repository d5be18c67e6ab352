#pragma once

// Cases of keras.ops for api_values.cpp, which includes this file where its helpers are known.

void keras_ops_cases() {
  namespace ops = td::keras::ops;
  const Tensor x = numbers({3, 4}), y = numbers({3, 4}, 1), ints{{7, -3, 2}, {0, 5, 6}};
  using Unary = Tensor (*)(const Tensor&);
  const std::map<std::string, Unary> of_small{{"abs", ops::abs},
                                              {"arccos", ops::arccos},
                                              {"arcsinh", ops::arcsinh},
                                              {"arctanh", ops::arctanh},
                                              {"cbrt", ops::cbrt},
                                              {"ceil", ops::ceil},
                                              {"deg2rad", ops::deg2rad},
                                              {"exp2", ops::exp2},
                                              {"expm1", ops::expm1},
                                              {"i0", ops::i0},
                                              {"rad2deg", ops::rad2deg},
                                              {"isfinite", ops::isfinite},
                                              {"isneginf", ops::isneginf},
                                              {"signbit", ops::signbit},
                                              {"sinc", ops::sinc},
                                              {"trunc", ops::trunc},
                                              {"hard_swish", ops::hard_swish},
                                              {"log_sigmoid", ops::log_sigmoid},
                                              {"silu", ops::silu},
                                              {"selu", ops::selu}};
  for (const auto& [name, f] : of_small) add("ops " + name, {f(x)});
  const std::map<std::string, Unary> of_positive{
      {"log10", ops::log10}, {"log2", ops::log2}, {"log1p", ops::log1p}, {"sqrt", ops::sqrt}};
  for (const auto& [name, f] : of_positive) add("ops " + name, {f(ops::abs(ints) + 1)});
  using Binary = Tensor (*)(td::Operand, td::Operand);
  const std::map<std::string, Binary> of_two{{"add", ops::add},
                                             {"subtract", ops::subtract},
                                             {"multiply", ops::multiply},
                                             {"divide", ops::divide},
                                             {"floor_divide", ops::floor_divide},
                                             {"mod", ops::mod},
                                             {"maximum", ops::maximum},
                                             {"hypot", ops::hypot},
                                             {"logaddexp", ops::logaddexp},
                                             {"arctan2", ops::arctan2},
                                             {"heaviside", ops::heaviside},
                                             {"fmax", ops::fmax},
                                             {"greater", ops::greater},
                                             {"isclose", [](td::Operand a, td::Operand b) {
                                                return ops::isclose(std::move(a), std::move(b));
                                              }}};
  for (const auto& [name, f] : of_two) {
    add("ops " + name, {f(x, y)});
    add("ops " + name + " mixed", {f(td::cast(x * 3.0, td::int32), y)});
  }
  add("ops gcd", {ops::gcd(Tensor{12, 18, 0}, Tensor{8, 27, 5}),
                  ops::lcm(Tensor{12, 18, 0}, Tensor{8, 27, 5})});
  add("ops ints", {ops::divide(ints, 2), ops::add(ints, 0.5), ops::multiply(ints, ints),
                   ops::sqrt(ops::abs(ints)), ops::power(ints, 2)});
  add("ops round", {ops::round(x, 2), ops::clip(x, -0.5, 0.5), ops::nan_to_num(x / 0.0)});
}
