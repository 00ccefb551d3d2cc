// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lambdadnn {

// From now on large tensors on the processor are LargeBlocks of the process. Once is enough.
void KeepLargeTensors();

}  // namespace lambdadnn
