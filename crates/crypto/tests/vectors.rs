//! Vectors of the algorithms from their specifications, and of CCM with the sizes of SMB, which the
//! specifications lack, from OpenSSL.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use weir_crypto::Provider;
use weir_smb::crypto::{Aead, AesKey, Crypto as _, Gmac as _, Mac as _};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|digit| !digit.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    hex(text).try_into().unwrap()
}

/// RFC 1320 §A.5.
#[test]
fn md4() {
    let check = |data: &str, expected| assert_eq!(Provider.md4(data.as_bytes()), bytes(expected));
    check("", "31d6cfe0d16ae931b73c59d7e0c089c0");
    check("abc", "a448017aaf21d8525fc10ae87aa6729d");
    check(
        "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
        "e33b4ddc9c38f2199c3e7b164fcc0536",
    );
}

/// RFC 1321 §A.5.
#[test]
fn md5() {
    let check = |parts: &[&str], expected| {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        assert_eq!(Provider.md5(&parts), bytes(expected));
    };
    check(&[], "d41d8cd98f00b204e9800998ecf8427e");
    check(&["message", "", " digest"], "f96b697d7cb7938d525a2f31aaf161d0");
}

/// RFC 2202 §2, the cases with keys of 16 bytes.
#[test]
fn hmac_md5() {
    assert_eq!(
        Provider.hmac_md5(&[0x0B; 16], &[b"Hi ", b"There"]),
        bytes("9294727a3638bb1c13f48ef8158bfc9d")
    );
    assert_eq!(
        Provider.hmac_md5(&[0xAA; 16], &[&[0xDD; 50]]),
        bytes("56be34521d144c88dbb8c733f0e8b3f6")
    );
}

/// RFC 6229 §2, the key of 128 bits.
#[test]
fn rc4() {
    let mut data = [0; 32];
    Provider.rc4(&bytes("0102030405060708090a0b0c0d0e0f10"), &mut data);
    let keystream = "9ac7cc9a609d1ef7b2932899cde41b97 5248c4959014126a6e8a84f11d1a9e1c";
    assert_eq!(data, bytes(keystream));
}

/// FIPS 180-4's example.
#[test]
fn sha512() {
    assert_eq!(
        Provider.sha512(&[b"a", b"bc"]),
        bytes(
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a
             2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        )
    );
}

/// RFC 4231 §4.2, §4.3.
#[test]
fn hmac_sha256() {
    assert_eq!(
        Provider.hmac_sha256(&[0x0B; 20]).tag(&[b"Hi There"]),
        bytes("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
    );
    assert_eq!(
        Provider.hmac_sha256(b"Jefe").tag(&[b"what do ya want ", b"for nothing?"]),
        bytes("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    );
}

/// RFC 4493 §4.
#[test]
fn aes_cmac() {
    let key = Provider.aes_cmac(&bytes("2b7e151628aed2a6abf7158809cf4f3c"));
    let message = hex("6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51
         30c81c46a35ce411e5fbc1191a0a52ef f69f2445df4f9b17ad2b417be66c3710");
    for (len, tag) in [
        (0, "bb1d6929e95937287fa37d129b756746"),
        (16, "070a16b46b4d4144f79bdd9dd04a287c"),
        (40, "dfa66747de9ae63030ca32611497c827"),
        (64, "51f0bebf7e3b9d92fc49741779363cfe"),
    ] {
        assert_eq!(key.tag(&[&message[..len]]), bytes(tag), "{len}");
    }
}

/// Seals and opens, and opens nothing that was changed.
fn check<const N: usize>(
    key: &impl Aead<N>,
    nonce: &str,
    aad: &str,
    plain: &str,
    sealed: &str,
    tag: &str,
) {
    let (nonce, tag) = (bytes(nonce), bytes(tag));
    let (aad, plain, sealed) = (hex(aad), hex(plain), hex(sealed));
    let mut data = plain.clone();
    assert_eq!(key.seal(&nonce, &aad, &mut data), Some(tag));
    assert_eq!(data, sealed);
    assert!(key.open(&nonce, &aad, &mut data, &tag));
    assert_eq!(data, plain);
    for at in 0..tag.len() {
        let mut changed = tag;
        changed[at] ^= 0x80;
        assert!(!key.open(&nonce, &aad, &mut sealed.clone(), &changed));
    }
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        assert!(!key.open(&nonce, &aad, &mut changed, &tag));
    }
    for at in 0..aad.len() {
        let mut changed = aad.clone();
        changed[at] ^= 1;
        assert!(!key.open(&nonce, &changed, &mut sealed.clone(), &tag));
    }
    let mut changed = nonce;
    changed[N - 1] ^= 1;
    assert!(!key.open(&changed, &aad, &mut sealed.clone(), &tag));
}

/// The cases 2, 4 and 16 of McGrew and Viega, "The Galois/Counter Mode of Operation".
#[test]
fn aes_gcm() {
    let plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
                 1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
    let aad = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
    check(
        &Provider.aes_gcm(&AesKey::Aes128([0; 16])),
        "000000000000000000000000",
        "",
        "00000000000000000000000000000000",
        "0388dace60b6a392f328c2b971b2fe78",
        "ab6e47d42cec13bdf53a67b21257bddf",
    );
    check(
        &Provider.aes_gcm(&AesKey::Aes128(bytes("feffe9928665731c6d6a8f9467308308"))),
        "cafebabefacedbaddecaf888",
        aad,
        plain,
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e
         21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
        "5bc94fbc3221a5db94fae95ae7121a47",
    );
    let key = bytes("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
    check(
        &Provider.aes_gcm(&AesKey::Aes256(key)),
        "cafebabefacedbaddecaf888",
        aad,
        plain,
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
         8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
        "76fc6ece0f4e1768cddf8853bb2d551b",
    );
}

/// The case 1 of the same paper is a GMAC as well.
#[test]
fn aes_gmac() {
    let tag = Provider.aes_gmac(&[0; 16]).tag(&[0; 12], &mut []);
    assert_eq!(tag, Some(bytes("58e2fccefa7e3061367f1d57a4e7455a")));
}

#[test]
fn aes_ccm() {
    let nonce = "101112131415161718191a";
    let aad = "000102030405060708090a0b0c0d0e0f10111213";
    let plain = "202122232425262728292a2b2c2d2e2f3031323334353637";
    let key = "404142434445464748494a4b4c4d4e4f";
    let key_128 = Provider.aes_ccm(&AesKey::Aes128(bytes(key)));
    check(
        &key_128,
        nonce,
        aad,
        plain,
        "d6d28b1b24b85b4ffbe0998809dab62e35428a3cca41bdc8",
        "c8b439bff187669acf5b3a26ab35e946",
    );
    check(&key_128, nonce, "", "", "", "1e48fd18ac90a727b147c5e52697234a");
    let key = format!("{key}505152535455565758595a5b5c5d5e5f");
    check(
        &Provider.aes_ccm(&AesKey::Aes256(bytes(&key))),
        nonce,
        aad,
        plain,
        "05be4fa985289932bcf824709a4950dd790fa62950bfbf50",
        "759010dec21ca39646208d49dfbca277",
    );
}

#[test]
fn random_bytes_differ() {
    let mut rows = [[0; 16]; 3];
    for row in &mut rows {
        Provider.random(row).unwrap();
    }
    assert!(rows[0] != rows[1] && rows[1] != rows[2] && rows[0] != rows[2]);
}

#[test]
fn equality() {
    assert!(Provider.equal(&[7; 16], &[7; 16]));
    for at in 0..16 {
        let mut other = [7; 16];
        other[at] = 6;
        assert!(!Provider.equal(&[7; 16], &other));
    }
}
