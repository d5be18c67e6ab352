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

void call_async(KernelContext& c, KernelDone done) {
  std::vector<Array> args;
  args.reserve(static_cast<std::size_t>(c.num_inputs()));
  for (int i = 0; i < c.num_inputs(); ++i) args.push_back(c.input(i));
  c.functions().run_async(
      *c.attr<FunctionRef>("f"), std::move(args), c,
      [&c, done = std::move(done)](std::exception_ptr error, std::vector<Array> results) {
        for (int i = 0; i < c.num_outputs() && !error; ++i)
          c.set_output(i, std::move(results[static_cast<std::size_t>(i)]));
        done(std::move(error));
      });
}

const KernelRegistration kPartitionedCall{
    {.op = "PartitionedCall", .run = call, .run_async = call_async}};
const KernelRegistration kStatefulPartitionedCall{
    {.op = "StatefulPartitionedCall", .run = call, .run_async = call_async}};

}  // namespace
}  // namespace tandem
