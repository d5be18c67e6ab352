#include <iostream>

#include <tandem/tandem.h>

int main() {
  const tandem::Tensor a{{1.0, 2.0}, {3.0, 4.0}};
  const tandem::Tensor b = tandem::matmul(a, a) + a;
  std::cout << b << '\n';
  if (!tandem::all_equal(b, tandem::Tensor{{8.0, 12.0}, {18.0, 26.0}})) return 1;
  std::cout << "ok\n";
}
