// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/server/slice_service.h"

#include <gtest/gtest.h>
