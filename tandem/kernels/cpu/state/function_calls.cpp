#include "tandem/graph/function.h"
#include "tandem/graph/kernel.h"

namespace tandem {
namespace {

void call(KernelContext& c) {
  std::vector<Array> args;
  args.reserve(static_cast<std::size_t>(c.num_inputs()));
  for (int i = 0; i < c.num_inputs(); ++i) args.push_back(c.input(i));
  std::vector<Array> results = c.functions().run(*c.attr<FunctionRef>("f"), std::move(args), c);
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, std::move(results[static_cast<std::size_t>(i)]));
}

const KernelRegistration kPartitionedCall{{.op = "PartitionedCall", .run = call}};
const KernelRegistration kStatefulPartitionedCall{{.op = "StatefulPartitionedCall", .run = call}};

}  // namespace
}  // namespace tandem
