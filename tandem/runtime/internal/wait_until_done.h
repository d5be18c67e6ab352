#pragma once

namespace tandem {

class KernelContext;
struct KernelDecl;

/// Runs an asynchronous kernel and blocks until it is done; throws its failure.
void wait_for_kernel(const KernelDecl& kernel, KernelContext& context);

}  // namespace tandem
