// An op of the program's own, used eagerly, traced and differentiated.

#include <iostream>
#include <utility>

#include <tandem/tandem.h>

namespace td = tandem;

namespace {

// y = x³: the declaration with shape and gradient, the kernel, and the function that users call.
const td::OpRegistration kCube({.name = "Cube",
                                .inputs = "x: float",
                                .outputs = "y: float",
                                .shape = td::shapes::unchanged,
                                .gradient = [](td::GradientContext& g) {
                                  g.set(0, 3 * g.input(0) * g.input(0) * g.grad());
                                }});

void cube_kernel(td::KernelContext& c) {
  float* y = c.allocate_output(0, c.input(0).shape()).data<float>();
  for (const float x : c.input(0).values<float>()) *y++ = x * x * x;
}
const td::KernelRegistration kCubeOnCpu({.op = "Cube", .run = cube_kernel});

td::Tensor cube(td::Tensor x) { return td::call1(kCube, {std::move(x)}); }

// What it must give.
bool expect(const char* what, const td::Tensor& got, const td::Tensor& wanted) {
  std::cout << what << ": " << got << '\n';
  return td::all_equal(got, wanted);
}

td::Tensor slope(td::Tensor x) {
  td::GradientTape tape;
  tape.watch(x);
  return tape.gradient(cube(x), x);
}

td::Tensor slope_of_trace(td::Tensor x) {
  td::GradientTape tape;
  tape.watch(x);
  return tape.gradient(td::function(cube)(x), x);
}

td::Tensor curvature(td::Tensor x) {
  td::GradientTape tape;
  tape.watch(x);
  return tape.gradient(slope(x), x);
}

}  // namespace

int main() {
  const td::Tensor x{1.0, 2.0, -3.0};
  const bool good = expect("eager", cube(x), {1.0, 8.0, -27.0}) &&
                    expect("traced", td::function(cube)(x), {1.0, 8.0, -27.0}) &&
                    expect("gradient", slope(x), {3.0, 12.0, 27.0}) &&
                    expect("gradient of the trace", slope_of_trace(x), {3.0, 12.0, 27.0}) &&
                    expect("trace of the gradient", td::function(slope)(x), {3.0, 12.0, 27.0}) &&
                    expect("second derivative", curvature(x), {6.0, 12.0, -18.0});
  if (!good) return 1;
  std::cout << "ok\n";
}
